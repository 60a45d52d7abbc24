/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

void ranges_done(struct ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct ranges){0};
}

static void insert(struct ranges *ranges, size_t i, struct range range)
{
	if (!ranges->items || ranges->n == ranges->cap) {
		ranges->cap = ranges->cap ? ranges->cap * 2 : 64;
		ranges->items = mem_grow(ranges->items, ranges->cap, sizeof(struct range));
	}
	if (i < ranges->n)
		memmove(ranges->items + i + 1, ranges->items + i,
			(ranges->n - i) * sizeof(struct range));
	ranges->items[i] = range;
	ranges->n++;
}

/* The first range that ends at or behind the number. */
static size_t find(const struct ranges *ranges, uint64_t number)
{
	size_t low = 0, high = ranges->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ranges->items[mid].last < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool add_late(struct ranges *ranges, uint64_t number)
{
	size_t i = find(ranges, number);

	if (i < ranges->n && ranges->items[i].first <= number)
		return false;
	if (ranges->n_late++ >= RANGES_LATE_MAX)
		return true;
	if (i > 0 && ranges->items[i - 1].last == number - 1)
		ranges->items[i - 1].last = number;
	else
		insert(ranges, i, (struct range){number, number});
	return true;
}

bool ranges_add(struct ranges *ranges, uint64_t number)
{
	struct range *end = ranges->n ? &ranges->items[ranges->n - 1] : NULL;

	if (end && number <= end->last)
		return add_late(ranges, number);
	if (end && number == end->last + 1)
		end->last = number;
	else
		insert(ranges, ranges->n, (struct range){number, number});
	return true;
}

void ranges_add_range(struct ranges *ranges, uint64_t first, uint64_t last)
{
	if (first <= last && (ranges->n == 0 || first > ranges->items[ranges->n - 1].last))
		insert(ranges, ranges->n, (struct range){first, last});
}

static void append(struct ranges *ranges, struct range range, uint64_t *twice)
{
	struct range *end = ranges->n ? &ranges->items[ranges->n - 1] : NULL;

	if (end && range.first <= end->last && *twice == 0)
		*twice = range.first;
	if (!end || range.first > end->last + 1)
		insert(ranges, ranges->n, range);
	else if (range.last > end->last)
		end->last = range.last;
}

void ranges_merge(struct ranges *a, const struct ranges *b, uint64_t *ret_twice)
{
	struct ranges both = {0};
	size_t i = 0, k = 0;

	*ret_twice = 0;
	while (i < a->n || k < b->n) {
		bool from_a = k == b->n || (i < a->n && a->items[i].first <= b->items[k].first);

		append(&both, from_a ? a->items[i++] : b->items[k++], ret_twice);
	}
	ranges_done(a);
	*a = both;
}
