/* SPDX-License-Identifier: Apache-2.0 */
/* What passed through this gateway in all, of flows that are open, too. */
#ifndef GATEWAY_TRAFFIC_H
#define GATEWAY_TRAFFIC_H

#include <stdint.h>

struct traffic {
	uint64_t bytes_out, bytes_in; /* sent by programs, and to them */
};

struct gateway;
/* Tells the supervisor. */
void traffic_tell(const struct gateway *gw);

#endif
