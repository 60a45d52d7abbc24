/* SPDX-License-Identifier: Apache-2.0 */
#include "util/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

void str_done(struct str *s)
{
	free(s->p);
	*s = (struct str){0};
}

void str_wipe(struct str *s)
{
	if (s->p)
		explicit_bzero(s->p, s->cap);
	str_done(s);
}

void str_reset(struct str *s)
{
	s->len = 0;
	if (s->p)
		s->p[0] = '\0';
}

void str_reserve(struct str *s, size_t more)
{
	size_t want, cap;

	if (__builtin_add_overflow(s->len, more, &want) || __builtin_add_overflow(want, 1, &want))
		abort();
	if (want <= s->cap)
		return;
	cap = s->cap ? s->cap : 64;
	while (cap < want)
		cap *= 2;
	s->p = mem_grow(s->p, cap, 1);
	s->cap = cap;
}

void str_add(struct str *s, const void *p, size_t len)
{
	str_reserve(s, len);
	if (len)
		memcpy(s->p + s->len, p, len);
	s->len += len;
	s->p[s->len] = '\0';
}

void str_puts(struct str *s, const char *text)
{
	str_add(s, text, strlen(text));
}

void str_putc(struct str *s, char c)
{
	str_add(s, &c, 1);
}

void str_printf(struct str *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	str_reserve(s, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(s->p + s->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	s->len += (size_t)n;
}

void str_int(struct str *s, long long v)
{
	char digits[24];
	char *end = digits + sizeof(digits), *at = end;
	unsigned long long u = v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v;

	do {
		*--at = (char)('0' + u % 10);
		u /= 10;
	} while (u);
	if (v < 0)
		*--at = '-';
	str_add(s, at, (size_t)(end - at));
}

char *str_take(struct str *s)
{
	char *text = s->p ? s->p : mem_dup("");

	*s = (struct str){0};
	return text;
}
