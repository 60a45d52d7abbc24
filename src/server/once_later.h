/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of requests with an Idempotency-Key that the store did not take: said again until it does, so that a database that was
 * away leaves no key that is at work for a day. In memory: a server that is killed leaves such keys. */
#ifndef SERVER_ONCE_LATER_H
#define SERVER_ONCE_LATER_H

#include "server/server.h"
#include "store/store.h"
#include "util/scoped.h"

struct once_later *once_later_new(struct server *server);
/* Before the workers are freed. */
void once_later_stop(struct once_later *later);
void once_later_free(struct once_later *later);
SCOPED_TYPE(once_later)

/* From any thread. is_drop: nothing is kept of it, and it may be asked again. False where there are too many already. */
bool once_later_add(struct once_later *later, const struct store_request *request, bool is_drop);

#endif
