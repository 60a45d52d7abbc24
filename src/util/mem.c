/* SPDX-License-Identifier: Apache-2.0 */
#include "util/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *have(void *p)
{
	if (p)
		return p;
	fputs("cloche: out of memory\n", stderr);
	abort();
}

void *mem_zero(size_t n, size_t size)
{
	return have(calloc(n ? n : 1, size ? size : 1));
}

void *mem_grow(void *p, size_t n, size_t size)
{
	return have(reallocarray(p, n ? n : 1, size));
}

char *mem_dup(const char *s)
{
	return s ? have(strdup(s)) : NULL;
}

void *mem_copy(const void *p, size_t len)
{
	char *copy = have(malloc(len + 1));

	if (len)
		memcpy(copy, p, len);
	copy[len] = '\0';
	return copy;
}

char *mem_printf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return have(n < 0 ? NULL : s);
}
