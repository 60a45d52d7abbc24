/* SPDX-License-Identifier: Apache-2.0 */
/* The two sockets of a UDP flow. Both are non-blocking and the caller's; a negative errno where there is none. */
#ifndef GATEWAY_UDP_SOCKET_H
#define GATEWAY_UDP_SOCKET_H

#include <stdint.h>

#include "netcatch/netcatch_wire.h"

struct gateway;

/* Gets what is sent from key's source to its destination, and answers from there. */
int udp_socket_inside(struct gateway *gw, const struct netcatch_key *key);
/* Connected to a place outside. */
int udp_socket_outside(const uint8_t address[16], uint16_t port);

#endif
