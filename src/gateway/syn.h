/* SPDX-License-Identifier: Apache-2.0 */
/* A held SYN as it was copied from the sandbox's network, from its IP header on. Pure. */
#ifndef GATEWAY_SYN_H
#define GATEWAY_SYN_H

#include <stddef.h>
#include <stdint.h>

#include "netcatch/netcatch_wire.h"

#define SYN_MAX           128
#define SYN_ICMP_MAX      (48 + SYN_MAX)
#define SYN_DATAGRAM_HEAD 48

/* Whether these bytes are one whole IPv4 or IPv6 header and a TCP header with SYN and no ACK. -EBADMSG. */
int syn_check(const uint8_t *packet, size_t len);

/* How many of these bytes are those headers, where one such packet begins here, with data or padding behind it or none.
 * -EBADMSG. */
int syn_cut(const uint8_t *packet, size_t len);

/* The ends of a checked packet, as a key has them. */
void syn_ends(const uint8_t *packet, struct netcatch_key *ret_key);

/* The sequence number of a checked packet: a repeat has the same. */
uint32_t syn_sequence(const uint8_t *packet);

/* Puts the right TCP checksum into a checked packet: on a loopback interface nobody had to compute it. */
void syn_complete(uint8_t *packet, size_t len);

/* The ICMP answer to a checked packet that makes its connect() fail with this errno (EHOSTUNREACH, ENETUNREACH);
 * returns its length. */
size_t syn_unreachable(
	const uint8_t *packet, size_t len, int positive_errno, uint8_t ret_answer[SYN_ICMP_MAX]);

/* The answer by which its connect() is refused. */
size_t syn_reset(const uint8_t *packet, uint8_t ret_answer[SYN_ICMP_MAX]);

/* Likewise to a datagram with these addresses (16 bytes, IPv4 mapped) and ports, which was not kept: its sender gets
 * ECONNREFUSED. */
size_t syn_port_unreachable(const uint8_t src[16], uint16_t sport, const uint8_t dst[16],
	uint16_t dport, uint8_t ret_answer[SYN_ICMP_MAX]);

/* The headers of a datagram with these len bytes that answers one of this key; returns their length. */
size_t syn_datagram(const struct netcatch_key *key, const void *p, size_t len,
	uint8_t ret_head[SYN_DATAGRAM_HEAD]);

#endif
