/* SPDX-License-Identifier: Apache-2.0 */
/* The request "visit" {port, from}: a stream to a TCP port inside, for a control plane that shows it to people. Whoever asked
 * gets one end of a pair of Unix sockets, the gateway the other (proto/gateway_wire.h): a way to this port and to nothing
 * else of the sandbox's network. The gateway's first byte there says what became of it. With "probe": true it is only said
 * whether anybody could be let in. */
#ifndef SUPERVISOR_VISIT_H
#define SUPERVISOR_VISIT_H

#include <jansson.h>

#include "supervisor/supervisor_internal.h"

/* Makes sup->visits, by which the gateway hears of them; it stays when a gateway dies. */
int visit_open(struct supervisor *sup, struct err *err);
void visit_close(struct supervisor *sup);
int visit_gateway_fd(const struct supervisor *sup); /* borrowed */

/* Answers conn with a descriptor. -EBUSY: it is paused; -EOPNOTSUPP: it has no network, so no gateway that would let
 * anybody in; -EAGAIN: too many wait. */
int visit_request(struct supervisor *sup, struct conn *conn, const json_t *body, struct err *err);

#endif
