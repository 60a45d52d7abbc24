/* SPDX-License-Identifier: Apache-2.0 */
/* A request in, its answer out. Both are read strictly and written anew, so what either side says can be taken in one way
 * only; trailers are left out. Bodies go on as they come, as far as the other side takes them.
 *
 * Each connection of a browser has one of its own inside. The server inside may have closed it just when the next request was
 * on its way: one without a body, and by a method that changes nothing, is asked again over another one, once. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "server/http_side.h"
#include "server/preview_head.h"
#include "server/preview_internal.h"
#include "util/clock.h"

#define HIGH     (256u << 10) /* bytes that wait for a side, beyond which nothing more is read for it */
#define LOW      (64u << 10) /* and from which on it is again */
#define READ_MAX (128u << 10)
#define TAKE_S   600
#define INFO_MAX 32 /* informational answers to one request */

static struct evbuffer *in_of(struct bufferevent *bev)
{
	return bufferevent_get_input(bev);
}

static struct evbuffer *out_of(struct bufferevent *bev)
{
	return bufferevent_get_output(bev);
}

static bool has_room(struct bufferevent *bev)
{
	return evbuffer_get_length(out_of(bev)) < HIGH;
}

/* What of the input is in one piece. */
static struct slice first_piece(struct evbuffer *in)
{
	struct evbuffer_iovec piece = {0};

	(void)evbuffer_peek(in, -1, NULL, &piece, 1); /* none where it is empty */
	return (struct slice){.p = piece.iov_base, .len = piece.iov_len};
}

static void put(struct bufferevent *to, struct slice data, bool is_chunked)
{
	scoped_str struct str head = {0};

	if (data.len == 0)
		return;
	if (is_chunked) {
		str_printf(&head, "%zx\r\n", data.len);
		evbuffer_add(out_of(to), head.p, head.len);
	}
	evbuffer_add(out_of(to), data.p, data.len);
	if (is_chunked)
		evbuffer_add(out_of(to), "\r\n", 2);
}

static void put_end(struct bufferevent *to, bool is_chunked)
{
	scoped_str struct str end = {0};

	if (!is_chunked)
		return;
	http1_add_last_chunk(&end);
	http1_add_end(&end);
	evbuffer_add(out_of(to), end.p, end.len);
}

/* One body, as far as it has come and is taken; to NULL: nobody wants it. Negative: it cannot be read. 1: it has ended. */
static int pass_body(
	struct bufferevent *from, struct http1_body *body, struct bufferevent *to, bool is_chunked)
{
	while (!body->ended && evbuffer_get_length(in_of(from)) > 0 && (!to || has_room(to))) {
		struct slice data;
		long n = http1_body_read(body, first_piece(in_of(from)), &data);

		if (n < 0)
			return (int)n;
		if (to)
			put(to, data, is_chunked);
		evbuffer_drain(in_of(from), (size_t)n);
		if (body->ended && to)
			put_end(to, is_chunked);
	}
	return body->ended;
}

/* "[::1]:2", "127.0.0.1:2": without brackets and port. */
static struct slice address_of(const char *text)
{
	const char *colon = strrchr(text, ':');
	struct slice address = {.p = text, .len = colon ? (size_t)(colon - text) : strlen(text)};

	if (address.len > 2 && *address.p == '[') {
		address.p++;
		address.len -= 2;
	}
	return address;
}

static struct preview_way way_of(const struct preview_conn *conn)
{
	return (struct preview_way){.port = conn->preview.port,
		.host = conn->head.host,
		.client = address_of(conn->peer.address),
		.is_tls = conn->all->place.is_tls};
}

static bool is_safe(const struct http1_head *head)
{
	return head->framing == HTTP1_NO_BODY && !preview_head_is_upgrade(head) &&
	       (slice_is(head->method, "GET") || slice_is(head->method, "HEAD") ||
		       slice_is(head->method, "OPTIONS"));
}

static void end_where_left(struct preview_conn *conn)
{
	conn->is_over |= evbuffer_get_length(out_of(conn->inside)) == 0;
}

/* ---- what libevent tells of the side inside ---- */

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct preview_conn *conn = ctx;

	conn->active_ns = clock_mono_ns();
	if (conn->state == PREVIEW_PASSING || conn->state == PREVIEW_TUNNEL)
		preview_pipe_pass(conn);
	else
		preview_conn_drop_inside(conn); /* nobody has asked */
	preview_conn_settle(conn);
}

static void on_written(struct bufferevent *bev, void *ctx)
{
	struct preview_conn *conn = ctx;

	if (conn->is_left)
		end_where_left(conn);
	else if (conn->state == PREVIEW_PASSING || conn->state == PREVIEW_TUNNEL)
		preview_pipe_pass(conn);
	preview_conn_settle(conn);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	struct preview_conn *conn = ctx;

	preview_pipe_on_inside_event(conn, what);
	preview_conn_settle(conn);
}

/* Both directions are closed and not only one: the server inside, or its gateway, broke it off (supervisor/visit.h). */
static bool is_cut_off(struct bufferevent *bev)
{
	struct pollfd p = {.fd = bufferevent_getfd(bev), .events = POLLIN};

	return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

void preview_pipe_on_inside_event(struct preview_conn *conn, short what)
{
	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)))
		return;
	if (conn->is_left) {
		conn->is_over = true;
		return;
	}
	if (conn->state != PREVIEW_PASSING && conn->state != PREVIEW_TUNNEL) {
		preview_conn_drop_inside(conn);
		return;
	}
	if (what & BEV_EVENT_WRITING && !(what & BEV_EVENT_TIMEOUT)) {
		conn->takes_no_more = true; /* it may have answered all the same */
	} else {
		conn->is_ended = true;
		conn->is_cut = !(what & BEV_EVENT_EOF) || is_cut_off(conn->inside);
	}
	preview_pipe_pass(conn);
}

/* ---- the answer ---- */

static void say_unreadable(struct preview_conn *conn, const char *why)
{
	scoped_str struct str text = {0};

	str_printf(&text, "The server inside answered what is no good HTTP: %s.", why);
	preview_conn_say(conn, 502, "No good answer", text.p);
}

static void give_up(struct preview_conn *conn)
{
	if (conn->may_try_again)
		preview_door_reach(conn);
	else
		preview_conn_say(conn, 502, "No answer",
			"The server inside closed the connection without an answer.");
}

static void begin_tunnel(struct preview_conn *conn)
{
	conn->is_last = true;
	preview_conn_set_state(conn, PREVIEW_TUNNEL);
}

/* An informational one, or the one. */
static void take_head(struct preview_conn *conn)
{
	struct preview_way way = way_of(conn);
	bool is_informational = conn->answer.status < 200;
	struct preview_answer how;
	scoped_str struct str out = {0};

	how = preview_head_add_answer(&conn->answer, &conn->head, &way,
		conn->is_last || !conn->body.ended || conn->takes_no_more, &out);
	if (!is_informational || conn->head.minor > 0)
		evbuffer_add(out_of(conn->client), out.p, out.len);
	if (conn->answer.status == 101) {
		begin_tunnel(conn);
	} else if (!is_informational) {
		conn->has_answer = true;
		conn->is_last = how.is_last;
		conn->framing = how.framing;
		http1_body_init(&conn->answer_body, &conn->answer);
	}
}

static bool is_switch(const struct preview_conn *conn)
{
	return preview_head_is_upgrade(&conn->head) && http1_is(conn->answer.upgrade, "websocket");
}

/* True: there was one. */
static bool read_head(struct preview_conn *conn)
{
	struct http1_fault fault = {502, "its head is not one"};
	int r = http_side_take_head(
		in_of(conn->inside), &conn->answer_scanned, &conn->answer_bytes, &fault);

	if (r > 0)
		r = http1_read_response(str_slice(&conn->answer_bytes), conn->head.method,
			    &conn->answer, &fault) < 0
		            ? -1
		            : 1;
	if (r > 0 && conn->answer.status == 101 && !is_switch(conn)) {
		fault.why = "it changes to another protocol than was asked for";
		r = -1;
	}
	if (r > 0 && conn->answer.status < 200 && ++conn->n_informational > INFO_MAX) {
		fault.why = "it goes on saying that it will answer";
		r = -1;
	}
	if (r < 0)
		say_unreadable(conn, fault.why);
	if (r <= 0)
		return false;
	conn->may_try_again = false;
	take_head(conn);
	if (!conn->has_answer) { /* another one follows */
		http1_head_done(&conn->answer);
		str_reset(&conn->answer_bytes);
	}
	return true;
}

/* So that the browser sees that something is missing: no last chunk, fewer bytes than were told, or a reset. */
static void cut(struct preview_conn *conn)
{
	const struct linger reset = {.l_onoff = 1};

	conn->is_last = true;
	conn->lingers = false;
	if (conn->framing == HTTP1_UNTIL_CLOSE) {
		(void)setsockopt(bufferevent_getfd(conn->client), SOL_SOCKET, SO_LINGER, &reset,
			sizeof(reset)); /* fails for no socket */
		conn->is_over = true;
	} else {
		preview_conn_answered(conn);
	}
}

static void end_answer(struct preview_conn *conn)
{
	bool is_kept = conn->answer.keep_alive && conn->body.ended && !conn->is_ended &&
	               !conn->takes_no_more && evbuffer_get_length(in_of(conn->inside)) == 0;

	conn->lingers |= !conn->body.ended;
	conn->is_last |= conn->lingers;
	if (is_kept)
		conn->is_used = true;
	else
		preview_conn_drop_inside(conn);
	preview_conn_answered(conn);
}

static void pass_answer(struct preview_conn *conn)
{
	int r;

	while (conn->state == PREVIEW_PASSING && !conn->has_answer && read_head(conn))
		;
	if (conn->state != PREVIEW_PASSING)
		return;
	if (!conn->has_answer) {
		if (conn->is_ended)
			give_up(conn);
		return;
	}
	r = pass_body(
		conn->inside, &conn->answer_body, conn->client, conn->framing == HTTP1_CHUNKED);
	if (r == 0 && conn->is_ended && evbuffer_get_length(in_of(conn->inside)) == 0) {
		r = conn->is_cut ? -EPIPE : http1_body_eof(&conn->answer_body);
		if (r == 0)
			put_end(conn->client, conn->framing == HTTP1_CHUNKED);
		r = r == 0 ? 1 : r;
	}
	if (r < 0)
		cut(conn);
	else if (r > 0)
		end_answer(conn);
}

/* ---- the request ---- */

static void pass_request(struct preview_conn *conn)
{
	bool is_wanted = !conn->takes_no_more && !conn->is_ended;
	int r = pass_body(conn->client, &conn->body, is_wanted ? conn->inside : NULL,
		conn->head.framing == HTTP1_CHUNKED);

	if (r >= 0)
		return;
	if (conn->has_answer)
		cut(conn);
	else {
		conn->is_last = conn->lingers = true;
		preview_conn_say(conn, 400, "This request cannot be read", conn->body.fault.why);
	}
}

/* ---- both ---- */

static void pour(struct bufferevent *from, struct bufferevent *to)
{
	if (has_room(to))
		evbuffer_add_buffer(out_of(to), in_of(from));
}

static void pass_tunnel(struct preview_conn *conn)
{
	if (!conn->is_ended)
		pour(conn->client, conn->inside);
	pour(conn->inside, conn->client);
	if (conn->takes_no_more ||
		(conn->is_ended && evbuffer_get_length(in_of(conn->inside)) == 0))
		preview_conn_answered(conn); /* the rest goes out, then it ends */
}

void preview_pipe_pass(struct preview_conn *conn)
{
	if (conn->state == PREVIEW_PASSING)
		pass_request(conn);
	if (conn->state == PREVIEW_PASSING && !conn->is_over)
		pass_answer(conn);
	if (conn->state == PREVIEW_TUNNEL && !conn->is_over)
		pass_tunnel(conn);
}

/* The browser has gone: what it said last goes in, and then it ends. */
void preview_pipe_on_client_end(struct preview_conn *conn)
{
	evbuffer_add_buffer(out_of(conn->inside), in_of(conn->client));
	bufferevent_setwatermark(conn->inside, EV_WRITE, 0, 0);
	conn->is_left = true;
	end_where_left(conn);
}

void preview_pipe_begin(struct preview_conn *conn)
{
	struct preview_way way = way_of(conn);
	scoped_str struct str out = {0};

	conn->may_try_again = conn->is_used && is_safe(&conn->head);
	conn->answer_scanned = 0;
	preview_head_add_request(&conn->head, &way, &out);
	bufferevent_setcb(conn->inside, on_read, on_written, on_event, conn);
	bufferevent_setwatermark(conn->inside, EV_READ, 0, READ_MAX);
	bufferevent_setwatermark(conn->inside, EV_WRITE, LOW, 0);
	bufferevent_setwatermark(conn->client, EV_WRITE, LOW, 0);
	bufferevent_set_timeouts(conn->inside, NULL, &(struct timeval){.tv_sec = TAKE_S});
	bufferevent_enable(conn->inside, EV_READ | EV_WRITE);
	evbuffer_add(out_of(conn->inside), out.p, out.len);
	preview_conn_set_state(conn, PREVIEW_PASSING);
	preview_pipe_pass(conn);
}
