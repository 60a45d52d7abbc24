/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from a client: heads, then bodies. A request is refused as early as it can be: by its head alone where that says
 * enough, then by whoever is asked first, and only then is a long body read.
 *
 * A body has room of its own from the moment that its length is known, so that one which has begun does not fail for the
 * next one's sake; and it has to come at some speed, since whoever holds that room keeps it from others. */
#include <stdio.h>
#include <stdlib.h>

#include "server/http_internal.h"
#include "server/http_side.h"
#include "server/http_status.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/scoped.h"

#define BODY_S    60          /* for the next bytes of a body, and for a short one */
#define BODY_RATE (16u << 10) /* bytes a second that a long one must have */
#define RETRY_S   "5"
#define PROBLEM   "application/problem+json"

static const struct http_refusal is_too_long = {
	413, "bad_request", "the body is longer than this request may have"};
static const struct http_refusal is_too_much = {503, "overloaded",
	"as many bytes of requests are under way as the server takes: try again in some seconds"};
static const struct http_refusal is_late = {408, "bad_request", "the request did not come in time"};

void http_read_refuse(struct http_conn *conn, const struct http_refusal *refusal)
{
	scoped_str struct str body = {0}, out = {0};
	bool is_strict = conn->exchange && conn->exchange->is_strict;

	http_status_problem(&body, refusal->status, refusal->code, refusal->why, NULL);
	exchange_add_start(&out, refusal->status, PROBLEM, is_strict);
	exchange_add_length(&out, body.len);
	if (refusal->status == 401)
		http1_add_field(&out, slice_of("WWW-Authenticate"), slice_of("Bearer"));
	if (refusal->status == 503)
		http1_add_field(&out, slice_of("Retry-After"), slice_of(RETRY_S));
	http1_add_field(&out, slice_of("Connection"), slice_of("close"));
	http1_add_end(&out);
	str_add(&out, body.p, body.len);
	http_conn_drop_exchange(conn);
	conn->lingers = true;
	evbuffer_add(bufferevent_get_output(conn->bev), out.p, out.len);
	http_conn_close_when_out(conn);
}

void http_read_late(struct http_conn *conn)
{
	http_read_refuse(conn, &is_late);
}

static void refuse_fault(struct http_conn *conn, const struct http1_fault *fault)
{
	http_read_refuse(conn, &(struct http_refusal){fault->status, "bad_request", fault->why});
}

/* ---- whole requests ---- */

static void hand_over(struct http_conn *conn)
{
	struct http_handler *handler = &conn->conns->handler;
	struct exchange *exchange = conn->exchange;

	conn->state = HTTP_ANSWERING;
	http_conn_set_deadline(conn, 0);
	conn->is_last = !exchange->head.keep_alive;
	conn->lingers = false;
	if (exchange->on_body)
		take (&exchange->on_body)(exchange->body_arg, true);
	else
		handler->on_request(handler->ctx, exchange);
}

/* Answered now, it would leave its body unread, so this connection would be of no more use. */
static void ask_first(struct http_conn *conn)
{
	struct http_handler *handler = &conn->conns->handler;

	conn->state = HTTP_ANSWERING;
	http_conn_set_deadline(conn, 0);
	conn->lingers = conn->exchange->head.framing != HTTP1_NO_BODY;
	conn->is_last = conn->lingers || !conn->exchange->head.keep_alive;
	handler->on_request(handler->ctx, conn->exchange);
}

/* ---- bodies ---- */

/* Room for a body of len bytes in all. */
static bool take_room(struct exchange *exchange, size_t len)
{
	struct http_bodies *bodies = exchange->bodies;
	size_t more = len > exchange->held ? len - exchange->held : 0;

	if (bodies && more > bodies->max - bodies->held)
		return false;
	if (bodies)
		bodies->held += more;
	exchange->held += more;
	return true;
}

/* Seconds that the next bytes of a body may take; negative: it has had all it may have. */
static int body_seconds(const struct exchange *exchange)
{
	int64_t past = (clock_mono_ns() - exchange->body_begun_ns) / 1000000000;
	int64_t left = BODY_S + (int64_t)(exchange->body.len / BODY_RATE) - past;

	return left < 1 ? -1 : left > BODY_S ? BODY_S : (int)left;
}

static void begin_body(struct http_conn *conn)
{
	struct exchange *exchange = conn->exchange;

	conn->state = HTTP_BODY; /* so whoever asked for it hears that it does not come */
	if (exchange->head.has_length && !take_room(exchange, exchange->head.length)) {
		http_read_refuse(conn, &is_too_much);
		return;
	}
	exchange->body_begun_ns = clock_mono_ns();
	http_conn_set_deadline(conn, BODY_S);
	if (exchange->head.expects_continue && exchange->head.framing != HTTP1_NO_BODY)
		evbuffer_add_printf(
			bufferevent_get_output(conn->bev), "HTTP/1.1 100 Continue\r\n\r\n");
}

/* False where the request was refused. */
static bool take_body(struct http_conn *conn, struct slice bytes, size_t *ret_used)
{
	struct exchange *exchange = conn->exchange;

	*ret_used = 0;
	while (!exchange->reader.ended && *ret_used < bytes.len) {
		struct slice data, rest = {.p = bytes.p + *ret_used, .len = bytes.len - *ret_used};
		long n = http1_body_read(&exchange->reader, rest, &data);

		if (n < 0) {
			refuse_fault(conn, &exchange->reader.fault);
			return false;
		}
		if (exchange->body.len + data.len > exchange->body_max) {
			http_read_refuse(conn, &is_too_long);
			return false;
		}
		if (!take_room(exchange, exchange->body.len + data.len)) {
			http_read_refuse(conn, &is_too_much);
			return false;
		}
		str_add(&exchange->body, data.p, data.len);
		*ret_used += (size_t)n;
		if (n == 0)
			break;
	}
	return true;
}

static void read_body(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t len = evbuffer_get_length(in), used = 0;
	int seconds;

	if (len > 0) {
		struct slice bytes = {
			.p = (const char *)evbuffer_pullup(in, (ev_ssize_t)len), .len = len};

		if (!take_body(conn, bytes, &used))
			return;
		evbuffer_drain(in, used);
	}
	if (conn->exchange->reader.framing == HTTP1_NO_BODY || conn->exchange->reader.ended) {
		hand_over(conn); /* what follows waits for the answer, which may be there already */
		return;
	}
	seconds = body_seconds(conn->exchange);
	if (seconds < 0)
		http_read_late(conn);
	else if (len > 0)
		http_conn_set_deadline(conn, seconds);
}

void http_read_body(struct http_conn *conn)
{
	begin_body(conn);
	if (conn->state == HTTP_BODY)
		read_body(conn);
}

/* ---- heads ---- */

static void begin_exchange(struct http_conn *conn)
{
	conn->exchange = new0(struct exchange);
	conn->exchange->conn = conn;
	conn->exchange->peer = conn->peer;
	conn->exchange->bodies = conn->conns->handler.bodies;
}

/* The head is read: what is to become of it. */
static void follow_plan(struct http_conn *conn)
{
	struct exchange *exchange = conn->exchange;
	struct http_handler *handler = &conn->conns->handler;
	struct http_plan plan = {0};

	handler->plan(handler->ctx, &exchange->head, &exchange->peer, &plan);
	exchange->body_max = plan.body_max;
	exchange->is_strict = plan.is_strict;
	http1_body_init(&exchange->reader, &exchange->head);
	if (plan.refusal.status)
		http_read_refuse(conn, &plan.refusal);
	else if (exchange->head.has_length && exchange->head.length > exchange->body_max)
		http_read_refuse(conn, &is_too_long);
	else if (plan.asks_first)
		ask_first(conn);
	else
		begin_body(conn);
}

/* True: there is more to do with what has come. */
static bool read_head(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	struct http1_fault fault = {400, "the request cannot be read"};
	scoped_str struct str bytes = {0};
	struct exchange *exchange;
	int r;

	if (evbuffer_get_length(in) == 0)
		return false;
	if (conn->state == HTTP_IDLE) {
		conn->state = HTTP_HEAD;
		http_conn_set_deadline(conn, HTTP_HEAD_S);
	}
	r = http_side_take_head(in, &conn->scanned, &bytes, &fault);
	if (r < 0)
		refuse_fault(conn, &fault);
	if (r <= 0)
		return false;
	begin_exchange(conn);
	exchange = conn->exchange;
	str_add(&exchange->head_bytes, bytes.p, bytes.len);
	if (http1_read_request(str_slice(&exchange->head_bytes), &exchange->head, &fault) < 0) {
		refuse_fault(conn, &fault);
		return false;
	}
	follow_plan(conn);
	return conn->state == HTTP_BODY;
}

void http_read_more(struct http_conn *conn)
{
	if (conn->state == HTTP_IDLE || conn->state == HTTP_HEAD) {
		if (!read_head(conn))
			return;
	}
	if (conn->state == HTTP_BODY)
		read_body(conn);
}
