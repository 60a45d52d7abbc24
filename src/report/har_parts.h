/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a HAR is made of, from one event each. Pure. */
#ifndef REPORT_HAR_PARTS_H
#define REPORT_HAR_PARTS_H

#include "event/event.h"
#include "util/str.h"
#include "view/network_body.h"

/* When it began: its end less its duration, whatever a record says of these. */
int64_t har_parts_start_ms(const struct event *ev);
/* An entry without its last brace: more may be put in. */
void har_parts_entry(struct str *out, const struct event *ev, const struct network_bodies *bodies,
	const char *sandbox);
/* A WebSocket message, as Chrome's developer tools write them. */
void har_parts_message(
	struct str *out, const struct event *ev, const struct network_bodies *bodies);

#endif
