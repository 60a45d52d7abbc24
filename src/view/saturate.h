/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of numbers that a record says: a forged one may say anything. */
#ifndef VIEW_SATURATE_H
#define VIEW_SATURATE_H

#include <stdint.h>

static inline int64_t saturate_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

/* How long from one time to a later one, in ms; 0 where it is not later. */
static inline int64_t saturate_span_ms(int64_t from_ns, int64_t to_ns)
{
	int64_t span;

	if (__builtin_sub_overflow(to_ns, from_ns, &span) || span < 0)
		return 0;
	return span / 1000000;
}

#endif
