/* SPDX-License-Identifier: Apache-2.0 */
/* What connections and their exchanges know of each other. */
#ifndef SERVER_HTTP_INTERNAL_H
#define SERVER_HTTP_INTERNAL_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdint.h>

#include "server/http_conn.h"
#include "util/str.h"

#define HTTP_HEAD_S 20 /* for a whole head, from its first byte */

enum http_state {
	HTTP_IDLE, /* between requests */
	HTTP_HEAD, /* some of one has come */
	HTTP_BODY,
	HTTP_ANSWERING, /* the exchange is somebody's */
	HTTP_CLOSING,   /* the last bytes go out */
	HTTP_LINGERING, /* they are out; what still comes is thrown away */
};

struct http_conn {
	struct http_conns *conns;
	struct http_conn *prev, *next;
	struct bufferevent *bev;
	struct event *deadline;
	struct http_peer peer;
	enum http_state state;
	size_t scanned;
	struct exchange *exchange; /* the one that is being read or answered */
	bool is_last;              /* close behind this answer */
	bool lingers;              /* more of a request that was refused may be on its way */
	size_t lingered;           /* bytes of it */
};

struct exchange {
	struct http_conn *conn; /* NULL: the client has left */
	struct http_peer peer;
	struct str head_bytes, body, fields;
	struct http1_head head;
	struct http1_body reader;
	struct http_bodies *bodies; /* NULL: no bound */
	size_t body_max, held;      /* held: counted in bodies */
	int64_t body_begun_ns;
	bool has_begun, is_chunked, is_strict, is_events;
	void (*on_body)(void *arg, bool is_there); /* NULL: nobody waits for the body */
	void *body_arg;
	void (*on_gone)(void *arg);
	void *gone_arg;
	void (*on_drained)(void *arg);
	void *drained_arg;
};

struct http_conns {
	struct event_base *base;
	struct http_handler handler;
	struct http_conn *first;
	size_t n;
};

/* http_conn.c */
void http_conn_drop(struct http_conn *conn); /* closes at once */
/* The answer is out, or on its way: on to the next request, or to the end. */
void http_conn_answered(struct http_conn *conn);
void http_conn_drop_exchange(struct http_conn *conn);
void http_conn_close_when_out(struct http_conn *conn);
void http_conn_set_deadline(struct http_conn *conn, int seconds); /* 0: none */

/* http_read.c */
void http_read_more(struct http_conn *conn); /* what has come, as far as it can be read now */
void http_read_body(struct http_conn *conn); /* of a request that was asked first */
/* A request that is not to be read any further: the answer, and no more from this client. */
void http_read_refuse(struct http_conn *conn, const struct http_refusal *refusal);
void http_read_late(struct http_conn *conn); /* it did not come in time */

/* exchange.c */
void exchange_free(struct exchange *exchange);
/* The lines of an answer's head that all have; type NULL: it has no body. */
void exchange_add_start(struct str *out, unsigned status, const char *type, bool is_strict);
void exchange_add_length(struct str *out, size_t len);

#endif
