/* SPDX-License-Identifier: Apache-2.0 */
/* Puts events back into the order in which they happened.
 *
 * seq is the order of writing; two cores that write at once can swap neighbours. Views go by guest_ns, so
 * each holds back the newest REORDER_HELD events of the kinds it looks at and gives out the oldest of them.
 * What comes later than that is taken where it comes: a view must stand it. */
#ifndef VIEW_REORDER_H
#define VIEW_REORDER_H

#include "event/event.h"
#include "util/scoped.h"

#define REORDER_HELD 1024

struct reorder;

struct reorder *reorder_new(void);
void reorder_free(struct reorder *reorder);
SCOPED_TYPE(reorder)

/* Keeps a copy. Call reorder_pop() until it is NULL before the next push. */
void reorder_push(struct reorder *reorder, const struct event *ev);
/* The oldest event, where more than REORDER_HELD are held or all are asked for; else NULL. Good until the next call. */
const struct event *reorder_pop(struct reorder *reorder, bool all);

#endif
