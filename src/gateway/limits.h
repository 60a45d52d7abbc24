/* SPDX-License-Identifier: Apache-2.0 */
/* What the flows of a gateway may take of the host, all together: descriptors (so many flows), and memory (budget.h).
 * Beyond, new flows are refused at once, and what has grown largest is broken off: each is told by its own event, and that
 * it happens at all by a hint. */
#ifndef GATEWAY_LIMITS_H
#define GATEWAY_LIMITS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "util/err.h"

struct gateway;
struct limits;

/* While there are rights and names still: reads the limit of descriptors, and opens what tells of memory. */
int limits_open(struct gateway *gw, struct limits **ret_limits, struct err *err);
void limits_free(struct limits *limits); /* tells what was not told yet */

/* 0: a new flow may begin. Else a negative errno, *ret_why, and it is counted. */
int limits_check(struct limits *limits, const char **ret_why);
/* One that was let in finds no room after all: the reason for its event. */
const char *limits_no_room(struct limits *limits);
/* The next connection of a listener; or a negative errno. What is not accepted stays half open and its listener ready for
 * ever, so one descriptor is kept for it: *ret_full, it is only to be closed, and limits_closed() called. */
int limits_accept(
	struct limits *limits, int listener, struct sockaddr_storage *ret_peer, bool *ret_full);
void limits_closed(struct limits *limits);
/* Once a turn: breaks off what is too much. */
void limits_turn(struct limits *limits);

#endif
