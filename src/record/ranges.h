/* SPDX-License-Identifier: Apache-2.0 */
/* A set of numbers, kept as the ranges they fill; cheap while they come in rising order. */
#ifndef RECORD_RANGES_H
#define RECORD_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t first, last;
};

struct ranges {
	struct range *items; /* rising, never overlapping */
	size_t n, cap;
	size_t n_late; /* numbers that came out of order */
};

/* So many numbers out of order are put in their place; what comes out of order then is passed over. */
#define RANGES_LATE_MAX 20000U

void ranges_done(struct ranges *ranges);
/* False where the number was there already. */
bool ranges_add(struct ranges *ranges, uint64_t number);
/* Adds first to last at the end: ranges that do not rise are passed over. */
void ranges_add_range(struct ranges *ranges, uint64_t first, uint64_t last);
/* Adds all of b to a: *ret_twice is the first number that both had, 0 for none. */
void ranges_merge(struct ranges *a, const struct ranges *b, uint64_t *ret_twice);

#endif
