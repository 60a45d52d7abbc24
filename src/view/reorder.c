/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of copies, sorted by time. Events come nearly sorted, so a new one moves few steps from the back. */
#include "view/reorder.h"

#include <stdlib.h>

#include "util/mem.h"
#include "view/event_copy.h"

#define RING (REORDER_HELD * 2)

struct reorder {
	struct event *ring[RING];
	size_t first, n;
	struct event *given; /* what reorder_pop() last returned */
};

struct reorder *reorder_new(void)
{
	return new0(struct reorder);
}

void reorder_free(struct reorder *reorder)
{
	if (!reorder)
		return;
	for (size_t i = 0; i < reorder->n; i++)
		free(reorder->ring[(reorder->first + i) % RING]);
	free(reorder->given);
	free(reorder);
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->guest_ns != b->guest_ns ? a->guest_ns < b->guest_ns : a->seq < b->seq;
}

void reorder_push(struct reorder *reorder, const struct event *ev)
{
	struct event *own = event_copy(ev);
	size_t i = reorder->n++;

	for (; i > 0; i--) {
		struct event *earlier = reorder->ring[(reorder->first + i - 1) % RING];

		if (!is_before(own, earlier))
			break;
		reorder->ring[(reorder->first + i) % RING] = earlier;
	}
	reorder->ring[(reorder->first + i) % RING] = own;
}

const struct event *reorder_pop(struct reorder *reorder, bool all)
{
	free(reorder->given);
	reorder->given = NULL;
	if (reorder->n == 0 || (!all && reorder->n <= REORDER_HELD))
		return NULL;
	reorder->given = reorder->ring[reorder->first];
	reorder->first = (reorder->first + 1) % RING;
	reorder->n--;
	return reorder->given;
}
