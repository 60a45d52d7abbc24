/* SPDX-License-Identifier: Apache-2.0 */
/* What the gateway tells, into the record: checked, and with the exec whose it is. */
#ifndef SUPERVISOR_NETWORK_EVENTS_H
#define SUPERVISOR_NETWORK_EVENTS_H

#include "event/event_json.h"
#include "proto/gateway_wire.h"
#include "supervisor/exec_names.h"
#include "supervisor/supervisor_internal.h"

/* Emits the event of a frame. line: memory for reading, kept by the caller from call to call. What is no event, or of a
 * kind that is not the gateway's to tell, is passed over. */
void network_events_take(struct supervisor *sup, const struct exec_names *names,
	const struct gateway_frame *frame, struct event_line **line);
/* Keeps a body; others than frames with one are passed over. The first that could not be kept is told in the record. */
void network_events_take_blob(
	struct supervisor *sup, const struct gateway_frame *frame, bool *has_lost);
/* net.gateway */
void network_events_say_gateway(struct supervisor *sup, const char *what, const char *reason);

#endif
