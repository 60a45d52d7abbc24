/* SPDX-License-Identifier: Apache-2.0 */
/* One client's connection: requests in, one at a time, answers out, over plain sockets or TLS.
 *
 * Heads are read by proto/http1, as the gateway reads them, so what is ambiguous is refused before anybody looks at it.
 * All of it belongs to the loop's thread. */
#ifndef SERVER_HTTP_CONN_H
#define SERVER_HTTP_CONN_H

#include <event2/event.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/exchange.h"

#define HTTP_BODY_MAX   (1u << 20)  /* of a request that is not a file */
#define HTTP_UPLOAD_MAX (64u << 20) /* of one that is */

struct http_conns;

struct http_handler {
	/* How many bytes of body a request may have, decided by its head. */
	size_t (*body_max)(void *ctx, const struct http1_head *head);
	/* A whole request is there. */
	void (*on_request)(void *ctx, struct exchange *exchange);
	void *ctx;
};

/* Connections of one server. tls may be NULL; it is borrowed. */
struct http_conns *http_conn_new(struct event_base *base, const struct http_handler *handler);
void http_conn_free(
	struct http_conns *conns); /* closes all; their exchanges have no client any more */
size_t http_conn_count(const struct http_conns *conns);
/* Takes over an accepted socket. */
void http_conn_add(struct http_conns *conns, int fd, SSL_CTX *tls, const struct http_peer *peer);

#endif
