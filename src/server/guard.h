/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that stay for long (streams, execs, files on their way), and whether those who asked still may: one whose key was
 * revoked, or may less now than its route needs, is hung up on. At once where this replica hears of it (store_on_revoked()),
 * else within seconds, since every key that has such a call is looked up again and again.
 *
 * On the loop, but where it says so. */
#ifndef SERVER_GUARD_H
#define SERVER_GUARD_H

#include "server/call.h"

struct guard;

/* Before other threads use the store. */
int guard_new(struct server *server, struct guard **ret_guard, struct err *err);
/* Once there are workers. */
void guard_start(struct guard *guard);
/* Before the workers go; nothing is looked up any more. */
void guard_stop(struct guard *guard);
void guard_free(struct guard *guard); /* after the store, whose thread may call it */
SCOPED_TYPE(guard)

/* One without a key stays as long as it likes. Its client is told, its exchange has none from then on (exchange_on_gone()). */
void guard_add(struct call *call);
void guard_remove(struct call *call); /* also of one that was not added */

#endif
