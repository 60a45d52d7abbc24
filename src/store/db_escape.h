/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a text that both databases take: PostgreSQL's are UTF-8 without NUL, and SQLite's end at a NUL for much of
 * SQL. A byte B that is no part of such a text is kept as the character U+10FE00 + B, which is for private use, and so is
 * each byte of one of these 256 characters themselves; so every text comes back as it was, and two that differ are kept
 * differently. */
#ifndef STORE_DB_ESCAPE_H
#define STORE_DB_ESCAPE_H

#include <stdbool.h>

#include "util/slice.h"
#include "util/str.h"

#define DB_ESCAPE_LEN 4 /* bytes that one may become */

/* Whether the text cannot be kept as it is. */
bool db_escape_is_needed(struct slice text);
void db_escape_add(struct str *out, struct slice text);
/* Whether a text that was kept has such characters. */
bool db_escape_is_in(struct slice kept);
void db_escape_undo(struct str *out, struct slice kept);

#endif
