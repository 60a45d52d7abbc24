/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is refused fails, too: its net.connect tells nothing that its net.refused has not told. */
#ifndef VIEW_REFUSED_TRIES_H
#define VIEW_REFUSED_TRIES_H

#include <stdbool.h>

#include "event/event.h"
#include "util/scoped.h"

struct refused_tries;

struct refused_tries *refused_tries_new(void);
void refused_tries_free(struct refused_tries *tries);
SCOPED_TYPE(refused_tries)

/* Takes events in the order of the record: whether this one is the failure of a try that was refused. Memory goes by
 * tries that were refused and whose failure has not come yet. */
bool refused_tries_ends(struct refused_tries *tries, const struct event *ev);

#endif
