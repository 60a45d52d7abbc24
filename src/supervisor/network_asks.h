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

/* From the gateway: passes the question on to the first client that is attached to a command, as {"ask":id,...}. Where there
 * is none the answer is no. */
void network_asks_take(
	struct supervisor *sup, struct network_asks *asks, const struct gateway_frame *frame);
/* From a client: {"ask":id,"allow":bool,"always":bool,"actor":text,"reason":text}. always makes a rule of a yes. */
int network_asks_answer(
	struct supervisor *sup, struct network_asks *asks, const json_t *body, struct err *err);
/* Nobody waits for an answer any more: the gateway that asked is gone. */
void network_asks_forget(struct network_asks *asks);

#endif
