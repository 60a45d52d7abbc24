/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for what blocks: the store, records, supervisors. Work is handed to them on the loop and comes back to it. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <event2/event.h>

#include "util/err.h"
#include "util/scoped.h"

struct workers;

struct work {
	struct work *next;
	void (*run)(struct work *work);  /* on a worker's thread */
	void (*done)(struct work *work); /* on the loop; frees it */
};

int workers_new(
	struct event_base *base, int n_threads, struct workers **ret_workers, struct err *err);
/* Waits for what runs; what has not begun is run, too, and everything comes back. */
void workers_free(struct workers *workers);
SCOPED_TYPE(workers)

/* From the loop or from a worker. */
void workers_add(struct workers *workers, struct work *work);
/* From any thread: done alone is called, on the loop. */
void workers_post(struct workers *workers, struct work *work);

#endif
