/* SPDX-License-Identifier: Apache-2.0 */
/* Published ports: what comes in at a listener on the host goes to the port inside, as it is; and so does what a control plane
 * brings (visitors.h). Told as net.accept, and as net.flow with direction "in" when it ends. */
#ifndef GATEWAY_PUBLISHED_H
#define GATEWAY_PUBLISHED_H

#include "proto/gateway_wire.h"
#include "util/err.h"

struct gateway;
struct published; /* all of them */
struct traffic;

int published_open(struct gateway *gw, struct published **ret_published, struct err *err);
/* One that came otherwise: takes fd over, which is non-blocking, and first writes there what became of it. */
void published_visit(struct published *published, int fd, const struct gateway_visit *asked);
/* Adds what open ones passed. */
void published_count(const struct published *published, struct traffic *traffic);
void published_free(struct published *published); /* resets all */

#endif
