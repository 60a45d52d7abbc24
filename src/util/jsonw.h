/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259) into a str. One line, no spaces; whoever calls keeps begins and ends paired.
 *
 * Bytes that are not UTF-8 go out as text with U+FFFD in their place, and, where the writer has a key,
 * with the exact bytes in base64 under "<key>_b64" behind it: the one rule for the whole product. */
#ifndef UTIL_JSONW_H
#define UTIL_JSONW_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

struct jsonw {
	struct str *out; /* borrowed */
	bool comma;      /* the next value needs one before it */
};

static inline struct jsonw jsonw_to(struct str *out)
{
	return (struct jsonw){.out = out};
}

void jsonw_object(struct jsonw *j);               /* { */
void jsonw_object_end(struct jsonw *j);           /* } */
void jsonw_array(struct jsonw *j);                /* [ */
void jsonw_array_end(struct jsonw *j);            /* ] */
void jsonw_key(struct jsonw *j, const char *key); /* key is ours: plain ASCII */

/* Values: inside an array, or behind jsonw_key(). */
void jsonw_slice(struct jsonw *j, struct slice text);
void jsonw_text(struct jsonw *j, const char *text); /* NULL gives null */
void jsonw_int(struct jsonw *j, int64_t v);
void jsonw_real(struct jsonw *j, double v); /* three decimals at most; not finite gives null */
void jsonw_bool(struct jsonw *j, bool v);
void jsonw_null(struct jsonw *j);
void jsonw_raw(struct jsonw *j, struct slice text); /* what is JSON already */

/* Members of an object. */
void jsonw_kslice(
	struct jsonw *j, const char *key, struct slice text); /* with <key>_b64 where needed */
void jsonw_ktext(
	struct jsonw *j, const char *key, const char *text); /* as json_kslice; NULL gives null */
void jsonw_kint(struct jsonw *j, const char *key, int64_t v);
void jsonw_kbool(struct jsonw *j, const char *key, bool v);
void jsonw_knull(struct jsonw *j, const char *key);
/* A list of byte strings; where any is not UTF-8, all of them again in base64 under <key>_b64. */
void jsonw_klist(struct jsonw *j, const char *key, const struct slice *items, size_t n);

/* A free key, such as a path or a label: bytes as jsonw_slice() writes them. */
void jsonw_free_key(struct jsonw *j, struct slice key);

void jsonw_base64(struct str *out, const void *p, size_t len); /* RFC 4648, padded, no quotes */

#endif
