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

/* Why a request goes no further. */
struct http_refusal {
	unsigned status; /* 0: it does */
	const char *code, *why;
};

/* What becomes of a request, by its head alone: before its body is read, and before anything is done. */
struct http_plan {
	struct http_refusal refusal;
	size_t body_max;
	bool asks_first; /* on_request comes before the body, which exchange_read_body() gets */
	bool is_strict; /* the answer says that this name is spoken to over TLS from now on (HSTS) */
};

/* Bytes of bodies that are under way, of all connections together; a request that would need more is answered 503. */
struct http_bodies {
	size_t held, max;
};

struct http_handler {
	void (*plan)(void *ctx, const struct http1_head *head, const struct http_peer *peer,
		struct http_plan *ret);
	/* A whole request is there, or its head where that is asked first. */
	void (*on_request)(void *ctx, struct exchange *exchange);
	struct http_bodies *bodies; /* borrowed until every exchange has ended; NULL: no bound */
	void *ctx;
};

/* Connections of one server. tls may be NULL; it is borrowed. */
struct http_conns *http_conn_new(struct event_base *base, const struct http_handler *handler);
void http_conn_free(
	struct http_conns *conns); /* closes all; their exchanges have no client any more */
size_t http_conn_count(const struct http_conns *conns);
/* Takes over an accepted socket; for listener_new(), conns is a struct http_conns. peer->is_tls is filled in here. */
void http_conn_add(void *conns, int fd, SSL_CTX *tls, const struct http_peer *peer);

#endif
