/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the deliveries of webhooks that are due. Each is claimed from the store by a lease, so that no two replicas send
 * one at once; what was sent and not noted down, since a process was killed, is sent again under the same webhook-id. */
#ifndef SERVER_WEBHOOK_SENDER_H
#define SERVER_WEBHOOK_SENDER_H

#include "server/server.h"
#include "util/err.h"
#include "util/scoped.h"

struct webhook_sender;

/* Starts its thread. -EINVAL where the configuration's "webhooks" is none. */
int webhook_sender_new(struct server *server, struct webhook_sender **ret_sender, struct err *err);
/* Gives back what is on its way, to be sent later. */
void webhook_sender_free(struct webhook_sender *sender);
SCOPED_TYPE(webhook_sender)

/* Something is due. From any thread; sender may be NULL. */
void webhook_sender_wake(struct webhook_sender *sender);

#endif
