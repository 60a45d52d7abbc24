/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to upstream in the making: direct, or through the upstream proxy by CONNECT (RFC 9110, 9.3.6). With a
 * proxy there is no other way: what it does not give fails. */
#ifndef GATEWAY_DIAL_H
#define GATEWAY_DIAL_H

#include <stdint.h>

#include "gateway/poller.h"
#include "util/str.h"

struct gateway;
struct lookup;

struct dial {
	struct gateway *gw;
	struct poller_io io;
	struct poller_timer timer;
	int fd; /* -1: none */
	enum dial_state {
		DIAL_IDLE,
		DIAL_RESOLVING, /* the proxy's name */
		DIAL_CONNECTING,
		DIAL_PLANE,  /* the supervisor is to connect */
		DIAL_ASKING, /* CONNECT is on its way to the proxy or waits for its answer */
		DIAL_DONE,
	} state;
	uint16_t proxy_port;
	struct str request, answer; /* of and by the proxy; request empty: there is none */
	size_t sent;
	struct lookup *lookup;
	struct dial *plane_next, **plane_at; /* plane.c: among those that wait; at NULL: not */
	uint64_t plane_id;
	const char *why; /* what the errno of on_done does not say; NULL: nothing */
	void (*on_done)(void *ctx, int r); /* 0: it is for dial_take(); else a negative errno */
	void *ctx;
};

/* host: the name to ask a proxy for; NULL for the address, which nobody resolves anew. Calls on_done later, or fails at once with a negative
 * errno. The dial lies in its owner, zeroed. */
int dial_start(struct gateway *gw, struct dial *dial, const uint8_t address[16], uint16_t port,
	const char *host, void (*on_done)(void *ctx, int r), void *ctx);
/* The same to the control plane, past any proxy. */
int dial_start_plane(
	struct gateway *gw, struct dial *dial, void (*on_done)(void *ctx, int r), void *ctx);
/* For plane.c: the connection is there, or a negative errno. */
void dial_adopt(struct dial *dial, int fd);
/* The connected socket, the caller's, with what is ready. Of a dial that was never started: none. */
void dial_take(struct dial *dial, struct poller_io *ret_io);
void dial_cancel(struct dial *dial); /* also one that was never started */

#endif
