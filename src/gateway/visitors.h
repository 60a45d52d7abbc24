/* SPDX-License-Identifier: Apache-2.0 */
/* Those whom the supervisor lets in to a port inside, each with a descriptor of its own (struct gateway_visit): people who look
 * at a preview of a control plane. What passes is published.h's. */
#ifndef GATEWAY_VISITORS_H
#define GATEWAY_VISITORS_H

#include "util/err.h"

struct gateway;
struct visitors;

/* Behind published_open(). */
int visitors_open(struct gateway *gw, struct visitors **ret_visitors, struct err *err);
void visitors_free(struct visitors *visitors);

#endif
