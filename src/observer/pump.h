/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way out of the kernel. Normally whoever reads takes them from the ring itself. When it is
 * away for too long (it writes to a slow disk) and the ring fills to its mark, a thread moves them to memory
 * meanwhile, up to a limit; near that limit it has the box held.
 *
 * A box begins with a small ring. The first time that one fills to its mark it is replaced: the big one is
 * put into the slot at once, and the small one is read on until no program can still write to it. */
#ifndef OBSERVER_PUMP_H
#define OBSERVER_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observer/programs.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"

struct pump;

struct pump_config {
	struct programs *programs;        /* a slot is taken; borrowed, also by the thread */
	const char *id;                   /* sandbox id; borrowed */
	size_t small, big;                /* bytes of the rings */
	size_t spare;                     /* bytes that may wait in memory beside; 0: no thread */
	void (*hold)(void *ctx, bool on); /* may be NULL; called by any thread, one at a time */
	void *hold_ctx;
};

/* Makes the small ring and puts it into the slot. The caller owns *ret_pump. */
int pump_new(const struct pump_config *config, struct pump **ret_pump, struct err *err);
void pump_free(struct pump *pump); /* takes the ring out of the slot */
SCOPED_TYPE(pump)

/* For one reader: readable when records wait after pump_arm(), or when they are many; borrowed. */
int pump_fd(const struct pump *pump);

/* At the beginning of a round of reading: whether the box is held then stands until the next one. */
void pump_begin(struct pump *pump);
/* 1 and the next record, good until the next call; 0 where there is none; -EBUSY where one is being written. */
int pump_next(struct pump *pump, struct slice *ret_record);
/* Whether what pump_next() found empty may hold more: while a ring is being replaced, records wait in the next one. */
bool pump_is_between(struct pump *pump);

/* While armed, this one's readiness makes pump_fd() readable, too; borrowed. */
int pump_add_fd(struct pump *pump, int fd, struct err *err);
/* Lets the kernel wake pump_fd() for the next record; true where one already waits. */
bool pump_arm(struct pump *pump);
bool pump_is_held(struct pump *pump);

/* A place in the stream: where the kernel writes now, and whether the reader has come to there. Where the rings
 * are being swapped it is only known to lie before the end of the next one, and the mark moves there. */
struct pump_mark {
	bool is_swapping;
	uint64_t at; /* bytes of all rings */
};
struct pump_mark pump_mark(struct pump *pump);
bool pump_has_passed(struct pump *pump, struct pump_mark *mark);

#endif
