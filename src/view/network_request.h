/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and WebSocket messages as `net --json` has them. */
#ifndef VIEW_NETWORK_REQUEST_H
#define VIEW_NETWORK_REQUEST_H

#include "event/event.h"
#include "util/str.h"
#include "view/network_body.h"

/* Adds an object from net.http or net.ws. bodies NULL: they are left out, "body" is null and "body_left_out" true where
 * there was one. */
void network_request_json(
	struct str *out, const struct event *ev, const struct network_bodies *bodies);
void network_request_message_json(
	struct str *out, const struct event *ev, const struct network_bodies *bodies);

#endif
