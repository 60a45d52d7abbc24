/* SPDX-License-Identifier: Apache-2.0 */
/* A datagram from inside, with where it was going: one socket gets those of all destinations. */
#ifndef GATEWAY_DATAGRAM_H
#define GATEWAY_DATAGRAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "netcatch/netcatch_wire.h"

struct datagram {
	char *p; /* where to, by the caller */
	size_t max, len;
	struct sockaddr_storage from;
	socklen_t from_len;
	struct netcatch_key key; /* dport 0: the socket says the address only */
};

/* 1, 0 where none is waiting. One whose destination is not said is passed over. */
int datagram_read(int fd, struct datagram *ret);
/* Answers one from where it was going; from_port is the socket's own. */
void datagram_reply(int fd, const struct datagram *to, const void *p, size_t len);

#endif
