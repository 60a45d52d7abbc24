/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a name, for what the gateway itself dials. */
#ifndef GATEWAY_LOOKUP_H
#define GATEWAY_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

struct gateway;
struct lookup;

/* n is 0 where there are none: r says why (-ENOENT: the name has no address). */
typedef void (*lookup_fn)(void *ctx, int r, const uint8_t (*addresses)[16], size_t n);

/* on_found is called later, once. */
struct lookup *lookup_start(struct gateway *gw, const char *host, lookup_fn on_found, void *ctx);
void lookup_cancel(struct lookup *lookup); /* NULL is fine */

/* A query as a program would have sent it. -EINVAL where host is no name. */
struct dns_query;
int lookup_query(const char *host, uint16_t type, struct dns_query *ret);

#endif
