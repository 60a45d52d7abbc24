/* SPDX-License-Identifier: Apache-2.0 */
/* What every event about a flow says: which, whose, where to. */
#ifndef GATEWAY_FLOW_HEAD_H
#define GATEWAY_FLOW_HEAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "netcatch/netcatch_wire.h"

#define FLOW_ADDRESS_SIZE INET6_ADDRSTRLEN

struct flow_head {
	int64_t flow;        /* counts the flows of the sandbox; 0: not said */
	char *host;          /* the name that led here; NULL for a raw address; owned */
	uint8_t address[16]; /* as the program sees it; IPv4 as ::ffff:a.b.c.d */
	uint16_t port;
	const char *protocol; /* "tcp", "udp" */
	uint8_t dialled[16];  /* where it really leads, if that is known */
	bool has_dialled;
	bool is_plane;  /* it leads to the control plane, which has no address */
	bool was_asked; /* somebody said that it may be reached */
	struct netcatch_owner owner;
	char address_text[FLOW_ADDRESS_SIZE];
};

/* host is copied. */
void flow_head_init(struct flow_head *head, const char *protocol, const uint8_t address[16],
	uint16_t port, const char *host, const struct netcatch_owner *owner);
void flow_head_done(struct flow_head *head);

/* An event with all of this in it, borrowed. */
struct event flow_head_event(const struct flow_head *head, enum event_kind kind);

/* "192.0.2.1" for ::ffff:192.0.2.1. */
void flow_address_text(const uint8_t address[16], char ret[FLOW_ADDRESS_SIZE]);
/* The socket address of one of these; its length. */
socklen_t flow_sockaddr(const uint8_t address[16], uint16_t port, struct sockaddr_storage *ret);
void flow_from_sockaddr(
	const struct sockaddr_storage *from, uint8_t ret_address[16], uint16_t *ret_port);

/* Closes a stream: with a reset, or in order, with what is still to be sent sent on. Accepted sockets have a reset set,
 * so that nobody takes a gateway's death for the end of what was said. */
void flow_close(int fd, bool reset);

#endif
