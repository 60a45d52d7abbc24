/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap by the time at which things are due; each knows its place, so it can be moved. */
#include "manifest/settle.h"

#include <stdlib.h>

#include "util/clock.h"
#include "util/mem.h"

static const int64_t quiet_ms[SETTLE_N_PACES] = {
	[SETTLE_CLOSED] = SETTLE_CLOSED_MS,
	[SETTLE_WRITING] = SETTLE_WRITING_MS,
	[SETTLE_GONE] = SETTLE_GONE_MS,
};

void settle_done(struct settle *settle)
{
	free(settle->heap);
	*settle = (struct settle){0};
}

static void put(struct settle *settle, size_t at, struct settle_item *item)
{
	settle->heap[at - 1] = item;
	item->at = at;
}

static void raise(struct settle *settle, struct settle_item *item)
{
	size_t at = item->at;

	while (at > 1 && settle->heap[at / 2 - 1]->due_ns > item->due_ns) {
		put(settle, at, settle->heap[at / 2 - 1]);
		at /= 2;
	}
	put(settle, at, item);
}

static void sink(struct settle *settle, struct settle_item *item)
{
	size_t at = item->at, child;

	while ((child = at * 2) <= settle->n) {
		if (child < settle->n &&
			settle->heap[child]->due_ns < settle->heap[child - 1]->due_ns)
			child++;
		if (settle->heap[child - 1]->due_ns >= item->due_ns)
			break;
		put(settle, at, settle->heap[child - 1]);
		at = child;
	}
	put(settle, at, item);
}

static void add(struct settle *settle, struct settle_item *item)
{
	if (settle->n == settle->room) {
		settle->room = settle->room ? settle->room * 2 : 64;
		settle->heap = mem_grow(settle->heap, settle->room, sizeof(struct settle_item *));
	}
	put(settle, ++settle->n, item);
}

void settle_note(struct settle *settle, struct settle_item *item, enum settle_pace pace, bool again,
	int64_t now_ns)
{
	int64_t quiet_ns = now_ns + quiet_ms[pace] * CLOCK_NS_PER_MS, hold_ns;

	if (item->at == 0) {
		item->first_ns = now_ns;
		item->due_ns = INT64_MAX;
		add(settle, item);
	}
	hold_ns =
		item->first_ns + (again ? SETTLE_HOLD_AGAIN_MS : SETTLE_HOLD_MS) * CLOCK_NS_PER_MS;
	item->last_ns = now_ns;
	item->due_ns = quiet_ns < hold_ns ? quiet_ns : hold_ns;
	raise(settle, item);
	sink(settle, item);
}

void settle_drop(struct settle *settle, struct settle_item *item)
{
	size_t at = item->at;
	struct settle_item *last;

	if (at == 0)
		return;
	item->at = 0;
	last = settle->heap[--settle->n];
	if (last == item)
		return;
	put(settle, at, last);
	raise(settle, last);
	sink(settle, last);
}

struct settle_item *settle_take(struct settle *settle, int64_t now_ns)
{
	struct settle_item *first = settle->n > 0 ? settle->heap[0] : NULL;

	if (!first || first->due_ns > now_ns)
		return NULL;
	settle_drop(settle, first);
	return first;
}

int64_t settle_next_ns(const struct settle *settle)
{
	return settle->n > 0 ? settle->heap[0]->due_ns : -1;
}
