/* SPDX-License-Identifier: Apache-2.0 */
/* When a change has settled: pure, the clock is the caller's.
 *
 * A thing that something happened to is due when nothing more happened to it for the quiet time of its pace, or when it
 * has waited for as long as a thing may. */
#ifndef MANIFEST_SETTLE_H
#define MANIFEST_SETTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTLE_CLOSED_MS     100 /* quiet time where nobody is known to write on */
#define SETTLE_WRITING_MS    300 /* after a write whose writer has not closed the file */
#define SETTLE_GONE_MS       300 /* in a folder from which things go: what else goes is told with it */
#define SETTLE_HOLD_MS       700  /* the longest wait, */
#define SETTLE_HOLD_AGAIN_MS 3000 /* and of what was told already while its writer went on */

enum settle_pace { SETTLE_CLOSED, SETTLE_WRITING, SETTLE_GONE, SETTLE_N_PACES };

/* Lies in what it stands for; zeroed: nothing waits. */
struct settle_item {
	size_t at; /* its place in the queue, from 1; 0: it does not wait */
	int64_t first_ns, last_ns, due_ns;
	unsigned tag; /* the owner's: which of its items it is */
};

struct settle {
	struct settle_item **heap; /* the first one is due first */
	size_t n, room;
};

void settle_done(struct settle *settle);
/* Something happened to it. again: it was told a moment ago and its writer went on. */
void settle_note(struct settle *settle, struct settle_item *item, enum settle_pace pace, bool again,
	int64_t now_ns);
void settle_drop(struct settle *settle, struct settle_item *item);
/* Takes out one that is due, the earliest first; NULL: none is. */
struct settle_item *settle_take(struct settle *settle, int64_t now_ns);
/* When the next one is due; -1: nothing waits. */
int64_t settle_next_ns(const struct settle *settle);

#endif
