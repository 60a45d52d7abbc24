/* SPDX-License-Identifier: Apache-2.0 */
/* An open TCP flow: the program's socket, upstream's, and what passes between them.
 *
 * It begins by looking (bridge_look.c): the program's first bytes are read without taking them, until it is clear
 * what they are; a server that speaks first makes it an opaque flow. Then either a machine (machine.h) handles every
 * byte, or the bytes are passed on as they are (relay.h). Back-pressure goes both ways: a side is read only as long as
 * the other takes. The end of file of one side is passed on when its bytes are out, and the other way stays open.
 * An error of either side resets both, since the program has to see that something is missing. */
#ifndef GATEWAY_BRIDGE_H
#define GATEWAY_BRIDGE_H

#include "gateway/flow_head.h"
#include "gateway/policy.h"
#include "gateway/poller.h"
#include "util/slice.h"

struct gateway;
struct bridges; /* all of them */
struct traffic;

struct bridges *bridge_all_new(struct gateway *gw);
void bridge_all_free(struct bridges *bridges); /* resets all */

/* Takes over both sockets and what is in head. upstream: none for a refused name, whose requests are answered with
 * why they are refused. */
void bridge_open(struct gateway *gw, struct flow_head *head, int client_fd,
	struct poller_io *upstream, const struct policy_answer *answer);

/* Resets what the rules in force no longer let through. */
void bridge_all_check(struct bridges *bridges);
/* Adds what open ones passed. */
void bridge_all_count(const struct bridges *bridges, struct traffic *traffic);

/* Resets those that hold most, until bytes are free, about; each is told with `why`, and on_broken() called for it. */
void bridge_all_relieve(struct bridges *bridges, size_t bytes, const char *why,
	void (*on_broken)(void *ctx), void *ctx);

#endif
