/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with an Idempotency-Key: done once, and answered again with the same bytes, for a day. */
#ifndef SERVER_ONCE_H
#define SERVER_ONCE_H

#include "server/call.h"

/* Before the handler, on a worker. 0: go on; 1: the call holds the answer that was given before; negative, with a sentence:
 * the same key is at work just now (-EBUSY), or was used for another request (-EINVAL, 422). */
int once_begin(struct call *call, struct err *err);
/* Keeps the answer; what may be tried again (5xx, 429) is not kept. */
void once_end(struct call *call);

#endif
