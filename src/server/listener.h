/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections on sockets that the launcher opened. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include <event2/event.h>

#include "server/exchange.h"
#include "server/listener_tls.h"
#include "util/err.h"
#include "util/scoped.h"

struct listener;

enum listener_kind {
	LISTENER_TCP,
	LISTENER_LOCAL,  /* a Unix socket, whose clients are known by their uid */
	LISTENER_INSIDE, /* one by which sandboxes call (control/plane_socket.h) */
};
/* -EINVAL: no kind is called so. */
int listener_find_kind(const char *name, enum listener_kind *ret);

/* Gets each socket that was accepted, and takes it over. */
typedef void (*listener_accept)(void *ctx, int fd, SSL_CTX *tls, const struct http_peer *peer);

/* Takes the socket over. tls: NULL, or borrowed; for TCP alone. */
struct listener *listener_new(struct event_base *base, listener_accept accept, void *ctx, int fd,
	enum listener_kind kind, const struct listener_tls *tls);
void listener_free(struct listener *listener);
SCOPED_TYPE(listener)

#endif
