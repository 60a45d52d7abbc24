/* SPDX-License-Identifier: Apache-2.0 */
/* An event that outlives the line it came from. */
#ifndef VIEW_EVENT_COPY_H
#define VIEW_EVENT_COPY_H

#include "event/event.h"

/* With all it points at, in one block: free() it. */
struct event *event_copy(const struct event *ev);

#endif
