/* SPDX-License-Identifier: Apache-2.0 */
/* head -> asking -> passing (or tunnel) -> head ... Callbacks of libevent come in here; they only mark a connection as over,
 * and it is freed where they end, so that nobody holds one that is gone.
 *
 * Nothing is read beyond a mark while the other side takes no more: what waits is bounded on both sides, whatever passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http_side.h"
#include "server/preview_internal.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/scoped.h"

#define HEAD_S    20   /* for a whole head, from its first byte */
#define IDLE_S    75   /* between two requests */
#define ASKING_S  60   /* more than a worker takes */
#define PASSING_S 600  /* without a byte either way */
#define TUNNEL_S  3600 /* likewise */
#define CLOSING_S 60
#define LINGER_S  5
#define TAKE_S \
	600 /* for a side to take the next of what waits for it: a film that is paused takes nothing */
#define LINGER_MAX (64u << 20)
#define READ_MAX   (128u << 10)

static const int limits_s[] = {
	[PREVIEW_IDLE] = IDLE_S,
	[PREVIEW_HEAD] = HEAD_S,
	[PREVIEW_ASKING] = ASKING_S,
	[PREVIEW_PASSING] = PASSING_S,
	[PREVIEW_TUNNEL] = TUNNEL_S,
	[PREVIEW_CLOSING] = CLOSING_S,
	[PREVIEW_LINGERING] = LINGER_S,
};

static struct evbuffer *output(const struct preview_conn *conn)
{
	return bufferevent_get_output(conn->client);
}

/* ---- its life ---- */

static void set_deadline(struct preview_conn *conn, int64_t ns)
{
	const struct timeval in = {
		.tv_sec = ns / CLOCK_NS_PER_S, .tv_usec = ns % CLOCK_NS_PER_S / 1000};

	event_add(conn->deadline, &in);
}

void preview_conn_set_state(struct preview_conn *conn, enum preview_state state)
{
	conn->state = state;
	conn->active_ns = clock_mono_ns();
	set_deadline(conn, limits_s[state] * CLOCK_NS_PER_S);
}

/* Bytes only note when they came; the timer is set once in a while. */
static bool moves(enum preview_state state)
{
	return state == PREVIEW_PASSING || state == PREVIEW_TUNNEL;
}

static void forget_answer(struct preview_conn *conn)
{
	http1_head_done(&conn->answer);
	http1_body_done(&conn->answer_body);
	str_reset(&conn->answer_bytes);
	conn->has_answer = false;
	conn->answer_scanned = 0;
	conn->n_informational = 0;
}

void preview_conn_drop_inside(struct preview_conn *conn)
{
	if (conn->inside)
		bufferevent_free(take(&conn->inside));
	conn->inside_id[0] = '\0';
	conn->is_used = conn->is_ended = conn->is_cut = conn->takes_no_more = false;
}

static void forget_request(struct preview_conn *conn)
{
	http1_head_done(&conn->head);
	http1_body_done(&conn->body);
	str_reset(&conn->head_bytes);
	forget_answer(conn);
	conn->has_pass = conn->may_try_again = false;
}

void preview_conn_drop(struct preview_conn *conn)
{
	struct previews *all = conn->all;

	preview_door_forget(conn);
	preview_conn_drop_inside(conn);
	forget_request(conn);
	str_done(&conn->head_bytes);
	str_done(&conn->answer_bytes);
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		all->first = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	all->n_conns--;
	event_free(conn->deadline);
	bufferevent_free(conn->client);
	free(conn);
}

void preview_conn_settle(struct preview_conn *conn)
{
	if (conn->is_over)
		preview_conn_drop(conn);
}

/* ---- its end ---- */

static void close_now(struct preview_conn *conn)
{
	if (!conn->lingers) {
		http_side_say_end(conn->client);
		conn->is_over = true;
		return;
	}
	preview_conn_set_state(conn, PREVIEW_LINGERING);
	http_side_shut(conn->client);
}

static void close_when_out(struct preview_conn *conn)
{
	preview_conn_drop_inside(conn);
	preview_conn_set_state(conn, PREVIEW_CLOSING);
	bufferevent_disable(conn->client, EV_READ);
	bufferevent_setwatermark(conn->client, EV_WRITE, 0, 0);
	if (evbuffer_get_length(output(conn)) == 0)
		close_now(conn);
}

static void throw_away(struct preview_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->client);

	conn->lingered += evbuffer_get_length(in);
	evbuffer_drain(in, evbuffer_get_length(in));
	if (conn->lingered > LINGER_MAX)
		conn->is_over = true;
}

/* ---- answers ---- */

void preview_conn_answered(struct preview_conn *conn)
{
	if (conn->is_last) {
		close_when_out(conn);
		return;
	}
	forget_request(conn);
	preview_conn_set_state(conn, PREVIEW_IDLE);
	/* What has come already is read from the loop and not from here: whoever ended an answer needs no care for it. */
	bufferevent_trigger(
		conn->client, EV_READ, BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}

void preview_conn_answer(struct preview_conn *conn, const struct str *bytes)
{
	evbuffer_add(output(conn), bytes->p, bytes->len);
	preview_conn_answered(conn);
}

static const char page[] = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
			   "<meta name=\"viewport\" content=\"width=device-width\">"
			   "<meta name=\"color-scheme\" content=\"light dark\"><title>%s</title>"
			   "<h1>%s</h1><p>%s</p></html>\n";

/* title and text are ours, and hold nothing that would be markup. */
void preview_conn_say(
	struct preview_conn *conn, unsigned status, const char *title, const char *text)
{
	scoped_str struct str body = {0}, out = {0};

	conn->lingers |= conn->head.framing != HTTP1_NO_BODY && !conn->body.ended;
	conn->is_last |= conn->lingers || conn->head.minor == 0;
	str_printf(&body, page, title, title, text);
	exchange_add_start(&out, status, "text/html; charset=utf-8", false);
	exchange_add_length(&out, body.len);
	if (status == 405)
		http1_add_field(&out, slice_of("Allow"), slice_of("GET"));
	if (conn->is_last)
		http1_add_field(&out, slice_of("Connection"), slice_of("close"));
	http1_add_end(&out);
	if (!slice_is(conn->head.method, "HEAD"))
		str_add(&out, body.p, body.len);
	preview_conn_drop_inside(conn);
	preview_conn_answer(conn, &out);
}

/* A head that cannot be read: the answer, and no more from this client. */
static void refuse(struct preview_conn *conn, const struct http1_fault *fault)
{
	conn->is_last = conn->lingers = true;
	preview_conn_say(conn, fault->status, "This request cannot be read", fault->why);
}

/* ---- heads ---- */

static void read_head(struct preview_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->client);
	struct http1_fault fault = {400, "the request cannot be read"};
	int r;

	if (evbuffer_get_length(in) == 0)
		return;
	if (conn->state == PREVIEW_IDLE)
		preview_conn_set_state(conn, PREVIEW_HEAD);
	r = http_side_take_head(in, &conn->scanned, &conn->head_bytes, &fault);
	if (r > 0)
		r = http1_read_request(str_slice(&conn->head_bytes), &conn->head, &fault) < 0 ? -1
		                                                                              : 1;
	if (r < 0)
		refuse(conn, &fault);
	if (r <= 0)
		return;
	http1_body_init(&conn->body, &conn->head);
	conn->is_last |= !conn->head.keep_alive || conn->head.minor == 0;
	preview_conn_set_state(conn, PREVIEW_ASKING);
	preview_door_enter(conn);
}

/* ---- what libevent tells ---- */

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct preview_conn *conn = ctx;

	conn->active_ns = moves(conn->state) ? clock_mono_ns() : conn->active_ns;
	switch (conn->state) {
	case PREVIEW_IDLE:
	case PREVIEW_HEAD:
		read_head(conn);
		break;
	case PREVIEW_PASSING:
	case PREVIEW_TUNNEL:
		preview_pipe_pass(conn);
		break;
	case PREVIEW_LINGERING:
		throw_away(conn);
		break;
	case PREVIEW_ASKING:
	case PREVIEW_CLOSING:
		break; /* it waits */
	}
	preview_conn_settle(conn);
}

static void on_written(struct bufferevent *bev, void *ctx)
{
	struct preview_conn *conn = ctx;

	conn->active_ns = moves(conn->state) ? clock_mono_ns() : conn->active_ns;
	if (conn->state == PREVIEW_CLOSING && evbuffer_get_length(output(conn)) == 0)
		close_now(conn);
	else if (moves(conn->state))
		preview_pipe_pass(conn);
	preview_conn_settle(conn);
}

static void on_event(struct bufferevent *bev, short what, void *ctx);

/* Its bufferevent is new. */
static void begin(struct preview_conn *conn)
{
	bufferevent_setcb(conn->client, on_read, on_written, on_event, conn);
	bufferevent_setwatermark(conn->client, EV_READ, 0, READ_MAX);
	bufferevent_set_timeouts(conn->client, NULL, &(struct timeval){.tv_sec = TAKE_S});
	bufferevent_enable(conn->client, EV_READ | EV_WRITE);
	preview_conn_set_state(conn, PREVIEW_IDLE);
}

/* Who speaks plain HTTP where TLS is spoken is told so, in plain HTTP. */
static void answer_plain(struct preview_conn *conn)
{
	struct bufferevent *plain = http_side_make_plain(conn->all->server->base, conn->client);

	if (!plain) {
		conn->is_over = true;
		return;
	}
	conn->client = plain;
	begin(conn);
	refuse(conn, &(struct http1_fault){400, "this port speaks TLS: use https://"});
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	struct preview_conn *conn = ctx;

	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)))
		return;
	if (what & BEV_EVENT_ERROR && http_side_is_plain(bev))
		answer_plain(conn);
	else if (conn->state == PREVIEW_TUNNEL && what & BEV_EVENT_EOF)
		preview_pipe_on_client_end(conn);
	else
		conn->is_over = true;
	preview_conn_settle(conn);
}

static void on_late(evutil_socket_t fd, short what, void *ctx)
{
	struct preview_conn *conn = ctx;
	int64_t left_ns =
		conn->active_ns + limits_s[conn->state] * CLOCK_NS_PER_S - clock_mono_ns();

	if (moves(conn->state) && left_ns > 0)
		set_deadline(conn, left_ns);
	else if (conn->state == PREVIEW_HEAD)
		refuse(conn, &(struct http1_fault){408, "it did not come in time"});
	else
		conn->is_over = true;
	preview_conn_settle(conn);
}

void preview_conn_add(void *ctx, int fd, SSL_CTX *tls, const struct http_peer *peer)
{
	struct previews *all = ctx;
	struct bufferevent *bev = all->n_conns < PREVIEW_CONNS_MAX
	                                  ? http_side_open(all->server->base, fd, tls)
	                                  : NULL;
	struct preview_conn *conn;
	const int on = 1;

	if (!bev) {
		close(fd);
		return;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on,
		sizeof(on)); /* else a quiet one that is gone stays an hour */
	conn = new0(struct preview_conn);
	conn->all = all;
	conn->client = bev;
	conn->peer = *peer;
	conn->peer.is_tls = tls != NULL;
	conn->deadline = evtimer_new(all->server->base, on_late, conn);
	conn->next = all->first;
	if (conn->next)
		conn->next->prev = conn;
	all->first = conn;
	all->n_conns++;
	begin(conn);
}
