/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that grow. Zero-initialise, str_done() at the end; p is NUL-terminated once anything was added. */
#ifndef UTIL_STR_H
#define UTIL_STR_H

#include <stddef.h>

#include "util/slice.h"

struct str {
	char *p;
	size_t len, cap;
};

void str_done(struct str *s);
void str_wipe(struct str *s);                 /* the same, and overwrites what it held */
void str_reset(struct str *s);                /* empties it, keeps the memory */
void str_reserve(struct str *s, size_t more); /* room for this many bytes beyond len and a NUL */
void str_add(struct str *s, const void *p, size_t len);
void str_puts(struct str *s, const char *text);
void str_putc(struct str *s, char c);
void str_printf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_int(struct str *s, long long v);
char *str_take(struct str *s); /* hands over the text, never NULL; s is empty then */

static inline struct slice str_slice(const struct str *s)
{
	return (struct slice){.p = s->p, .len = s->len};
}

#define scoped_str    __attribute__((cleanup(str_done)))
#define scoped_secret __attribute__((cleanup(str_wipe)))

#endif
