/* SPDX-License-Identifier: Apache-2.0 */
/* Requests a second for each key, over all replicas: each takes shares of a second's count from the store, so that the sum is
 * never more than the limit; what a replica took and did not use is lost to that second, at most a share. */
#ifndef SERVER_LIMITER_H
#define SERVER_LIMITER_H

#include "server/call.h"

#define LIMITER_DEFAULT 200 /* requests a second, of a key that has none of its own */

struct limiter *limiter_new(struct store *store);
void limiter_free(struct limiter *limiter);

/* Counts a request of a key, and now and then notes that the key was used. -EDQUOT with a sentence where it has no more in
 * this second. limit 0: the default. From any thread; may block. */
int limiter_take(
	struct limiter *limiter, const struct caller *caller, int64_t limit, struct err *err);

#endif
