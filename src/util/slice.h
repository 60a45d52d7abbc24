/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that somebody else owns: a pointer and a length, no NUL promised. p is NULL where there is nothing. */
#ifndef UTIL_SLICE_H
#define UTIL_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
	const char *p;
	size_t len;
};

static inline struct slice slice_of(const char *s)
{
	return (struct slice){.p = s, .len = s ? strlen(s) : 0};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline bool slice_is(struct slice a, const char *s)
{
	return slice_eq(a, slice_of(s));
}

static inline bool slice_starts(struct slice a, const char *prefix)
{
	size_t n = strlen(prefix);

	return a.len >= n && memcmp(a.p, prefix, n) == 0;
}

static inline bool slice_ends(struct slice a, const char *suffix)
{
	size_t n = strlen(suffix);

	return a.len >= n && memcmp(a.p + a.len - n, suffix, n) == 0;
}

#endif
