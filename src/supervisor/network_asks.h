/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are held until a person has answered (--ask): who is asked, and what was said. */
#ifndef SUPERVISOR_NETWORK_ASKS_H
#define SUPERVISOR_NETWORK_ASKS_H

#include <jansson.h>

#include "proto/gateway_wire.h"
#include "supervisor/supervisor_internal.h"

struct network_asks;

struct network_asks *network_asks_new(void);
void network_asks_free(struct network_asks *asks);
SCOPED_TYPE(network_asks)

/* From the gateway: passes the question on to the first client of this host that is attached to a command, as {"ask":id,...}.
 * Where there is none it waits for the control plane, and without one the answer is no. */
void network_asks_take(
	struct supervisor *sup, struct network_asks *asks, const struct gateway_frame *frame);
/* From a client: {"ask":id,"allow":bool,"always":bool,"actor":text,"reason":text}. always makes a rule of a yes.
 * -EPERM where a yes would lead to an address and not to a name, and may_private is not set. */
int network_asks_answer(struct supervisor *sup, struct network_asks *asks, const json_t *body,
	bool may_private, struct err *err);
/* Adds {"asks":[{ask, host, address, port, protocol, pid, asked_at, expires_at}]}, the oldest first. asks may be NULL. */
void network_asks_write(const struct network_asks *asks, struct str *out);
/* Nobody waits for an answer any more: the gateway that asked is gone. */
void network_asks_forget(struct network_asks *asks);

#endif
