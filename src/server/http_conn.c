/* SPDX-License-Identifier: Apache-2.0 */
/* head -> body -> answering -> head ... (http_read.c has the first two); a connection that is not to be used again is closed once its last answer is out.
 * A client that is still sending what was refused would lose that answer (RFC 9112, 9.6): it is heard out, for a while.
 *
 * Input is read up to a mark and no further while an answer is made, so that a client that leaves is noticed and one that
 * sends on costs no memory. Every state has a deadline: a head and a body must come, an answer must be taken. A stream may
 * be silent, but what was written to it must be taken, too. */
#include "server/http_conn.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/http_internal.h"
#include "server/http_side.h"
#include "util/mem.h"
#include "util/scoped.h"

#define IDLE_S     75 /* between two requests */
#define TAKE_S     60 /* for a client to take the next of what waits for it */
#define LINGER_S   5  /* for a client that was refused to leave */
#define LINGER_MAX (64u << 20)
#define READ_MAX   (128u << 10)
#define CONNS_MAX  20000
#define INSIDE_MAX 64 /* of them, from one sandbox */

static void begin(struct http_conn *conn);

/* Lets go of the exchange: one that somebody answers is theirs from then on. */
void http_conn_drop_exchange(struct http_conn *conn)
{
	struct exchange *exchange = take(&conn->exchange);

	if (!exchange)
		return;
	exchange->conn = NULL;
	if (conn->state == HTTP_ANSWERING && exchange->on_gone)
		exchange->on_gone(exchange->gone_arg);
	else if (conn->state != HTTP_ANSWERING && exchange->on_body)
		exchange->on_body(exchange->body_arg, false);
	else if (conn->state != HTTP_ANSWERING)
		exchange_free(exchange);
}

void http_conn_drop(struct http_conn *conn)
{
	struct http_conns *conns = conn->conns;

	http_conn_drop_exchange(conn);
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		conns->first = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	conns->n--;
	event_free(conn->deadline);
	bufferevent_free(conn->bev);
	free(conn);
}

void http_conn_set_deadline(struct http_conn *conn, int seconds)
{
	const struct timeval in = {.tv_sec = seconds};

	if (seconds)
		event_add(conn->deadline, &in);
	else
		event_del(conn->deadline);
}

static struct evbuffer *output(const struct http_conn *conn)
{
	return bufferevent_get_output(conn->bev);
}

static bool has_output(const struct http_conn *conn)
{
	return evbuffer_get_length(output(conn)) > 0;
}

/* Our side is closed; the client's is read until it closes, too. */
static void linger(struct http_conn *conn)
{
	conn->state = HTTP_LINGERING;
	http_side_shut(conn->bev);
	http_conn_set_deadline(conn, LINGER_S);
}

static void throw_away(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);

	conn->lingered += evbuffer_get_length(in);
	evbuffer_drain(in, evbuffer_get_length(in));
	if (conn->lingered > LINGER_MAX)
		http_conn_drop(conn);
}

static void close_now(struct http_conn *conn)
{
	if (conn->lingers) {
		linger(conn);
		return;
	}
	http_side_say_end(conn->bev);
	http_conn_drop(conn);
}

void http_conn_close_when_out(struct http_conn *conn)
{
	conn->state = HTTP_CLOSING;
	bufferevent_disable(conn->bev, EV_READ);
	http_conn_set_deadline(conn, 0);
	if (!has_output(conn))
		close_now(conn);
}

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct http_conn *conn = ctx;

	(void)bev;
	if (conn->state == HTTP_LINGERING)
		throw_away(conn);
	else
		http_read_more(conn);
}

static void on_written(struct bufferevent *bev, void *ctx)
{
	struct http_conn *conn = ctx;
	struct exchange *exchange = conn->exchange;

	(void)bev;
	if (conn->state == HTTP_CLOSING)
		close_now(conn);
	else if (conn->state == HTTP_IDLE)
		http_conn_set_deadline(conn, IDLE_S);
	else if (conn->state == HTTP_ANSWERING && exchange->on_drained)
		exchange->on_drained(exchange->drained_arg);
}

/* Who speaks plain HTTP where TLS is spoken is told so, in plain HTTP. */
static void answer_plain(struct http_conn *conn)
{
	static const struct http_refusal refusal = {
		400, "bad_request", "this port speaks TLS: use https://"};
	struct bufferevent *plain = http_side_make_plain(conn->conns->base, conn->bev);

	if (!plain) {
		http_conn_drop(conn);
		return;
	}
	conn->bev = plain;
	begin(conn);
	http_read_refuse(conn, &refusal);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	(void)bev;
	if ((what & BEV_EVENT_ERROR) && http_side_is_plain(bev))
		answer_plain(ctx);
	else if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
		http_conn_drop(ctx);
}

/* Its bufferevent is new. */
static void begin(struct http_conn *conn)
{
	bufferevent_setcb(conn->bev, on_read, on_written, on_event, conn);
	bufferevent_setwatermark(conn->bev, EV_READ, 0, READ_MAX);
	bufferevent_set_timeouts(conn->bev, NULL, &(struct timeval){.tv_sec = TAKE_S});
	bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
	http_conn_set_deadline(conn, HTTP_HEAD_S);
}

static void on_late(evutil_socket_t fd, short what, void *ctx)
{
	struct http_conn *conn = ctx;

	(void)fd;
	(void)what;
	if (conn->state == HTTP_HEAD || conn->state == HTTP_BODY)
		http_read_late(conn);
	else
		http_conn_drop(conn);
}

struct http_conns *http_conn_new(struct event_base *base, const struct http_handler *handler)
{
	struct http_conns *conns = new0(struct http_conns);

	conns->base = base;
	conns->handler = *handler;
	return conns;
}

void http_conn_free(struct http_conns *conns)
{
	if (!conns)
		return;
	while (conns->first)
		http_conn_drop(conns->first);
	free(conns);
}

size_t http_conn_count(const struct http_conns *conns)
{
	return conns->n;
}

/* Others than the sandbox's own are to find room as well. */
static bool has_room(const struct http_conns *conns, const struct http_peer *peer)
{
	size_t n = 0;

	for (const struct http_conn *conn = conns->first; conn && peer->sandbox[0];
		conn = conn->next)
		n += strcmp(conn->peer.sandbox, peer->sandbox) == 0;
	return conns->n < CONNS_MAX && n < INSIDE_MAX;
}

void http_conn_add(void *ctx, int fd, SSL_CTX *tls, const struct http_peer *peer)
{
	struct http_conns *conns = ctx;
	struct bufferevent *bev =
		has_room(conns, peer) ? http_side_open(conns->base, fd, tls) : NULL;
	struct http_conn *conn;

	if (!bev) {
		close(fd);
		return;
	}
	conn = new0(struct http_conn);
	conn->conns = conns;
	conn->bev = bev;
	conn->peer = *peer;
	conn->peer.is_tls = tls != NULL;
	conn->deadline = evtimer_new(conns->base, on_late, conn);
	conn->next = conns->first;
	if (conn->next)
		conn->next->prev = conn;
	conns->first = conn;
	conns->n++;
	begin(conn);
}

/* Behind the last answer nothing is read; else from the loop and not from here: whoever ended an exchange needs no care for
 * what comes next. */
void http_conn_answered(struct http_conn *conn)
{
	if (conn->is_last) {
		http_conn_close_when_out(conn);
		return;
	}
	conn->state = HTTP_IDLE;
	http_conn_set_deadline(conn, has_output(conn) ? 0 : IDLE_S);
	bufferevent_trigger(
		conn->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}
