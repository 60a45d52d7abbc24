/* SPDX-License-Identifier: Apache-2.0 */
/* head -> body -> answering -> head ...; a connection that is not to be used again is closed once its last answer is out.
 * A client that is still sending what was refused would lose that answer (RFC 9112, 9.6): it is heard out, for a while.
 *
 * Input is read up to a mark and no further while an answer is made, so that a client that leaves is noticed and one that
 * sends on costs no memory. Every state has a deadline: a head and a body must come, an answer must be taken. A stream may
 * be silent, but what was written to it must be taken, too. */
#include "server/http_conn.h"

#include <event2/bufferevent_ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http_internal.h"
#include "server/http_status.h"
#include "util/mem.h"
#include "util/scoped.h"

#define HEAD_S     20 /* for a whole head, from its first byte */
#define IDLE_S     75 /* between two requests */
#define BODY_S     60 /* for the next bytes of a body */
#define TAKE_S     60 /* for a client to take the next of what waits for it */
#define LINGER_S   5  /* for a client that was refused to leave */
#define LINGER_MAX (64u << 20)
#define READ_MAX   (128u << 10)
#define CONNS_MAX  20000
#define PROBLEM    "application/problem+json"

static void read_more(struct http_conn *conn);

/* Lets go of the exchange: one that somebody answers is theirs from then on. */
static void drop_exchange(struct http_conn *conn)
{
	struct exchange *exchange = take(&conn->exchange);

	if (!exchange)
		return;
	if (conn->state != HTTP_ANSWERING) {
		exchange_free(exchange);
		return;
	}
	exchange->conn = NULL;
	if (exchange->on_gone)
		exchange->on_gone(exchange->gone_arg);
}

void http_conn_drop(struct http_conn *conn)
{
	struct http_conns *conns = conn->conns;

	drop_exchange(conn);
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

static void set_deadline(struct http_conn *conn, int seconds)
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
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	SSL *tls = bufferevent_openssl_get_ssl(conn->bev);

	conn->state = HTTP_LINGERING;
	if (tls)
		(void)SSL_shutdown(
			tls); /* for manners: who does not hear it sees the socket's end */
	(void)shutdown(
		bufferevent_getfd(conn->bev), SHUT_WR); /* gone already: its end is read next */
	evbuffer_drain(in, evbuffer_get_length(in));
	bufferevent_enable(conn->bev, EV_READ);
	set_deadline(conn, LINGER_S);
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
	if (conn->lingers)
		linger(conn);
	else
		http_conn_drop(conn);
}

static void close_when_out(struct http_conn *conn)
{
	conn->state = HTTP_CLOSING;
	bufferevent_disable(conn->bev, EV_READ);
	set_deadline(conn, 0);
	if (!has_output(conn))
		close_now(conn);
}

/* A request that cannot be read: the answer, and no more from this client. */
static void refuse(struct http_conn *conn, const struct http1_fault *fault)
{
	scoped_str struct str body = {0}, out = {0};

	http_status_problem(&body, fault->status, "bad_request", fault->why, NULL);
	exchange_add_start(&out, fault->status, PROBLEM);
	exchange_add_length(&out, body.len);
	http1_add_field(&out, slice_of("Connection"), slice_of("close"));
	http1_add_end(&out);
	str_add(&out, body.p, body.len);
	drop_exchange(conn);
	conn->lingers = true;
	evbuffer_add(output(conn), out.p, out.len);
	close_when_out(conn);
}

static void begin_exchange(struct http_conn *conn)
{
	conn->exchange = new0(struct exchange);
	conn->exchange->conn = conn;
	conn->exchange->peer = conn->peer;
}

static void hand_over(struct http_conn *conn)
{
	struct http_handler *handler = &conn->conns->handler;

	conn->state = HTTP_ANSWERING;
	set_deadline(conn, 0);
	if (!conn->exchange->head.keep_alive)
		conn->is_last = true;
	handler->on_request(handler->ctx, conn->exchange);
}

static void begin_body(struct http_conn *conn)
{
	struct exchange *exchange = conn->exchange;
	struct http_handler *handler = &conn->conns->handler;

	exchange->body_max = handler->body_max(handler->ctx, &exchange->head);
	http1_body_init(&exchange->reader, &exchange->head);
	if (exchange->head.has_length && exchange->head.length > exchange->body_max) {
		refuse(conn, &(struct http1_fault){
				     413, "the body is longer than this request may have"});
		return;
	}
	conn->state = HTTP_BODY;
	set_deadline(conn, BODY_S);
	if (exchange->head.expects_continue && exchange->head.framing != HTTP1_NO_BODY)
		evbuffer_add_printf(output(conn), "HTTP/1.1 100 Continue\r\n\r\n");
}

/* True: there is more to do with what has come. */
static bool read_head(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t len = evbuffer_get_length(in);
	struct http1_fault fault = {400, "the request cannot be read"};
	struct exchange *exchange;
	struct slice bytes;
	long n;

	if (len > HTTP1_MAX_HEAD)
		len = HTTP1_MAX_HEAD;
	if (len == 0)
		return false;
	if (conn->state == HTTP_IDLE) {
		conn->state = HTTP_HEAD;
		set_deadline(conn, HEAD_S);
	}
	bytes = (struct slice){.p = (const char *)evbuffer_pullup(in, (ev_ssize_t)len), .len = len};
	n = http1_find_end(bytes, &conn->scanned, &fault);
	if (n == 0 && len == HTTP1_MAX_HEAD) {
		fault = (struct http1_fault){431, "the head of the request is too long"};
		n = -1;
	}
	if (n <= 0) {
		if (n < 0)
			refuse(conn, &fault);
		return false;
	}
	begin_exchange(conn);
	exchange = conn->exchange;
	str_add(&exchange->head_bytes, bytes.p, (size_t)n);
	evbuffer_drain(in, (size_t)n);
	conn->scanned = 0;
	if (http1_read_request(str_slice(&exchange->head_bytes), &exchange->head, &fault) < 0) {
		refuse(conn, &fault);
		return false;
	}
	begin_body(conn);
	return conn->state == HTTP_BODY;
}

static bool take_body(struct http_conn *conn, struct slice bytes, size_t *ret_used)
{
	struct exchange *exchange = conn->exchange;

	*ret_used = 0;
	while (!exchange->reader.ended && *ret_used < bytes.len) {
		struct slice data, rest = {.p = bytes.p + *ret_used, .len = bytes.len - *ret_used};
		long n = http1_body_read(&exchange->reader, rest, &data);

		if (n < 0) {
			refuse(conn, &exchange->reader.fault);
			return false;
		}
		if (exchange->body.len + data.len > exchange->body_max) {
			refuse(conn, &(struct http1_fault){
					     413, "the body is longer than this request may have"});
			return false;
		}
		str_add(&exchange->body, data.p, data.len);
		*ret_used += (size_t)n;
		if (n == 0)
			break;
	}
	return true;
}

static bool read_body(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t len = evbuffer_get_length(in), used = 0;

	if (len > 0) {
		struct slice bytes = {
			.p = (const char *)evbuffer_pullup(in, (ev_ssize_t)len), .len = len};

		if (!take_body(conn, bytes, &used))
			return false;
		evbuffer_drain(in, used);
		set_deadline(conn, BODY_S);
	}
	if (conn->exchange->reader.framing != HTTP1_NO_BODY && !conn->exchange->reader.ended)
		return false;
	hand_over(conn);
	return false; /* what follows waits for the answer, which may be there already */
}

static void read_more(struct http_conn *conn)
{
	bool goes_on = true;

	while (goes_on)
		goes_on = conn->state == HTTP_IDLE || conn->state == HTTP_HEAD ? read_head(conn)
		          : conn->state == HTTP_BODY                           ? read_body(conn)
		                                                               : false;
}

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct http_conn *conn = ctx;

	(void)bev;
	if (conn->state == HTTP_LINGERING)
		throw_away(conn);
	else
		read_more(conn);
}

static void on_written(struct bufferevent *bev, void *ctx)
{
	struct http_conn *conn = ctx;
	struct exchange *exchange = conn->exchange;

	(void)bev;
	if (conn->state == HTTP_CLOSING)
		close_now(conn);
	else if (conn->state == HTTP_IDLE)
		set_deadline(conn, IDLE_S);
	else if (conn->state == HTTP_ANSWERING && exchange->on_drained)
		exchange->on_drained(exchange->drained_arg);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
		http_conn_drop(ctx);
}

static void on_late(evutil_socket_t fd, short what, void *ctx)
{
	struct http_conn *conn = ctx;

	(void)fd;
	(void)what;
	if (conn->state == HTTP_HEAD || conn->state == HTTP_BODY)
		refuse(conn, &(struct http1_fault){408, "the request did not come in time"});
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

static struct bufferevent *wrap(struct event_base *base, int fd, SSL_CTX *tls)
{
	if (!tls)
		return bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	return bufferevent_openssl_socket_new(
		base, fd, SSL_new(tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
}

void http_conn_add(struct http_conns *conns, int fd, SSL_CTX *tls, const struct http_peer *peer)
{
	struct bufferevent *bev = conns->n < CONNS_MAX ? wrap(conns->base, fd, tls) : NULL;
	struct http_conn *conn;

	if (!bev) {
		close(fd);
		return;
	}
	conn = new0(struct http_conn);
	conn->conns = conns;
	conn->bev = bev;
	conn->peer = *peer;
	conn->deadline = evtimer_new(conns->base, on_late, conn);
	conn->next = conns->first;
	if (conn->next)
		conn->next->prev = conn;
	conns->first = conn;
	conns->n++;
	bufferevent_setcb(bev, on_read, on_written, on_event, conn);
	bufferevent_setwatermark(bev, EV_READ, 0, READ_MAX);
	bufferevent_set_timeouts(bev, NULL, &(struct timeval){.tv_sec = TAKE_S});
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	set_deadline(conn, HEAD_S);
}

/* Behind the last answer nothing is read; else from the loop and not from here: whoever ended an exchange needs no care for
 * what comes next. */
void http_conn_answered(struct http_conn *conn)
{
	if (conn->is_last) {
		close_when_out(conn);
		return;
	}
	conn->state = HTTP_IDLE;
	set_deadline(conn, has_output(conn) ? 0 : IDLE_S);
	bufferevent_trigger(
		conn->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}
