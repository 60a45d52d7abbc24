/* SPDX-License-Identifier: Apache-2.0 */
/* Where events go. Whoever makes events (observer, supervisor, later the gateway) knows only this. */
#ifndef EVENT_SINK_H
#define EVENT_SINK_H

#include "event/event.h"

struct event_sink {
	/* Takes one event; borrowed for the call. Numbers it (seq, wall_ms). Never fails: what cannot be
	 * kept becomes a counted loss or ends the sandbox, by the sink's own rules. */
	void (*emit)(struct event_sink *sink, struct event *ev);
};

static inline void sink_emit(struct event_sink *sink, struct event *ev)
{
	sink->emit(sink, ev);
}

#endif
