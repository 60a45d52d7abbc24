/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the upstream resolvers: over UDP from a port of its own each time, the next resolver when one is silent or
 * broken, over TCP where an answer was cut. */
#ifndef GATEWAY_RESOLVER_H
#define GATEWAY_RESOLVER_H

#include "proto/dns.h"
#include "spec/spec_network.h"
#include "util/scoped.h"

struct gateway;
struct resolver;
struct resolver_ask;

/* "ADDR:PORT"; those that are none are passed over. */
struct resolver *resolver_new(struct gateway *gw, const struct spec_words *addresses);
void resolver_free(struct resolver *resolver); /* forgets what is asked, without a word */
SCOPED_TYPE(resolver)

/* answer is NULL where r is negative: -ETIMEDOUT, -ECONNREFUSED, -EBADMSG, -ENOENT (no resolver), -EBUSY (too many
 * questions at once). Borrowed for the call. */
typedef void (*resolver_fn)(void *ctx, int r, const struct dns_answer *answer);

/* The query is copied. on_answer is called later, once. */
struct resolver_ask *resolver_ask(
	struct resolver *resolver, const struct dns_query *query, resolver_fn on_answer, void *ctx);
void resolver_cancel(struct resolver_ask *ask); /* NULL is fine */

#endif
