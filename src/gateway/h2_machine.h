/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 (RFC 9113) between a program inside and a server, as a machine (machine.h): a connection of its own to each
 * side, streams carried from one to the other. Each is asked about, and told of, as on HTTP/1 (http_machine.h); one
 * that is refused is answered in its stream with the problem document, the others go on.
 *
 * What waits in memory is bounded by the windows that each side is given, and those are opened again only as what
 * came goes out on the other side. Trailers, interim answers, resets and GOAWAY are carried over; server push,
 * CONNECT (also for WebSocket) and priorities are not. */
#ifndef GATEWAY_H2_MACHINE_H
#define GATEWAY_H2_MACHINE_H

#include "gateway/http_machine.h"

/* As http_machine_new(). */
void h2_machine_new(const struct http_setup *setup, struct machine *ret_machine);

#endif
