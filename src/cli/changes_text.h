/* SPDX-License-Identifier: Apache-2.0 */
/* `changes --json` as lines for people. */
#ifndef CLI_CHANGES_TEXT_H
#define CLI_CHANGES_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "util/str.h"
#include "view/view_text.h"

/* One root: its name, a line a change ("M path"), what was skipped, what needs a look. Everything is escaped. verbose:
 * also who made each change. */
void changes_text_add(
	struct str *out, const struct view_style *style, const json_t *root, bool verbose);
/* The bytes of a member, exact where they are no text; empty where there is none. */
void changes_text_bytes(const json_t *object, const char *key, struct str *out);

#endif
