/* SPDX-License-Identifier: Apache-2.0 */
/* From what is indexed to deliveries that wait in the store; webhook_sender.h sends them. The same event makes one delivery of a
 * webhook, however often and by how many replicas it is indexed: its id says so. */
#ifndef SERVER_WEBHOOKS_H
#define SERVER_WEBHOOKS_H

#include "server/server.h"
#include "server/webhook.h"

struct webhooks *webhooks_new(struct server *server);
void webhooks_free(struct webhooks *webhooks);
SCOPED_TYPE(webhooks)

struct webhooks_event {
	const char *kind, *sandbox, *json;
	int64_t seq, at_ms;
};
/* Adds what the account's webhooks want to hear: of all that happened since each was made. Returns how many deliveries were
 * added. A webhook that another replica made is known a second later; that replica has it at once. Blocks. */
int webhooks_feed(struct webhooks *webhooks, const char *account,
	const struct webhooks_event *events, size_t n, struct err *err);

/* A copy of a webhook, the caller's; -ENOENT where it is gone. Blocks. */
int webhooks_get(struct webhooks *webhooks, const char *account, const char *id,
	struct webhook **ret_webhook, struct err *err);
/* Those of the account were changed. */
void webhooks_changed(struct webhooks *webhooks, const char *account);

/* Whether the configuration lets the account's webhooks lead to private addresses. */
bool webhooks_may_be_private(const struct server *server, const char *account);

#endif
