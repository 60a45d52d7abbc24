/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects that are too long for where they go: what is long in them stays out, and is named. */
#ifndef SERVER_ROW_SHORTEN_H
#define SERVER_ROW_SHORTEN_H

#include <stddef.h>

#include "util/slice.h"
#include "util/str.h"

/* Adds object to out without its members of more than max bytes: "omitted" lists their names. An object that cannot be read
 * is {}. is_null: those are null instead, since whoever reads the object looks for them. */
void row_shorten(struct slice object, size_t max, bool is_null, struct str *out);

#endif
