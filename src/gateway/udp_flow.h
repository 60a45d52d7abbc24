/* SPDX-License-Identifier: Apache-2.0 */
/* UDP but for names: a flow is a pair of sockets, one inside, bound to where the program sends and connected to it, so
 * that the kernel gives it all further datagrams; one outside. It ends when nothing has passed for a while. Refused
 * datagrams are answered as by a closed port. QUIC (port 443) is always refused, since nothing could be said about
 * its requests: clients fall back to TCP. */
#ifndef GATEWAY_UDP_FLOW_H
#define GATEWAY_UDP_FLOW_H

#include "util/err.h"

struct gateway;
struct udp_flows;
struct traffic;

int udp_flows_open(struct gateway *gw, struct udp_flows **ret_flows, struct err *err);
void udp_flows_free(struct udp_flows *flows);
void udp_flows_check(struct udp_flows *flows); /* the rules have changed */
void udp_flows_count(
	const struct udp_flows *flows, struct traffic *traffic); /* adds what they passed */

#endif
