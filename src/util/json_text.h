/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of JSON (RFC 8259) that stand on hot paths, read in place. What is unusual is refused, not misread: the
 * caller then asks a whole JSON library. UTF-8 and control characters are the caller's to have checked. */
#ifndef UTIL_JSON_TEXT_H
#define UTIL_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "util/slice.h"

/* The text of a string, still escaped: p stands behind the opening quote. Its length, up to the closing quote; -1
 * where there is none, or an escape is none or half of a surrogate pair. */
long json_text_find_end(const char *p, size_t len, bool *ret_escaped);

/* Takes the escapes out of what json_text_find_end() found, in place; the length then. */
size_t json_text_decode(char *p, size_t len);

/* An object of texts that our own writers made, {"a":"b","c":"d"}: no blanks, no escapes in names. */
struct json_flat {
	const char *at, *end;
	bool is_begun, is_over;
};

struct json_flat_item {
	struct slice name, value; /* value: still escaped */
	bool escaped;
};

static inline struct json_flat json_flat_of(struct slice json)
{
	return (struct json_flat){.at = json.p, .end = json.p + json.len};
}

/* 1: the next item; 0: the object is over, at stands behind it; -1: it is not of that form. */
int json_flat_next(struct json_flat *flat, struct json_flat_item *ret_item);

#endif
