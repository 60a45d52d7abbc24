/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the server's side of a connection over a socket pair; for tests and the fuzzer. The handler answers each request
 * with "METHOD TARGET BODY", at once or, for targets with "/later", from the loop's next turn; for "/stream" in pieces. Those with "/ask" are asked first. */
#ifndef TESTS_HTTP_CONN_DRIVE_H
#define TESTS_HTTP_CONN_DRIVE_H

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http_conn.h"
#include "util/mem.h"
#include "util/str.h"

#define DRIVE_BODY_MAX   1000
#define DRIVE_BODIES_MAX (1u << 20)

struct drive {
	struct event_base *base;
	struct http_conns *conns;
	struct http_bodies bodies;
	int fd;         /* the client's end */
	unsigned n;     /* requests so far */
	struct str out; /* what came back */
	bool is_closed;
};

static void drive_plan(void *ctx, const struct http1_head *head, const struct http_peer *peer,
	struct http_plan *ret)
{
	static const struct http_refusal refused = {403, "no_entry", "not this one"};

	ret->body_max = DRIVE_BODY_MAX;
	ret->asks_first = slice_starts(head->target, "/ask");
	if (slice_is(head->target, "/refused"))
		ret->refusal = refused;
}

static void drive_answer(struct exchange *exchange)
{
	const struct http1_head *head = exchange_head(exchange);
	struct slice body = exchange_body(exchange);
	scoped_str struct str text = {0};

	str_add(&text, head->method.p, head->method.len);
	str_putc(&text, ' ');
	str_add(&text, head->target.p, head->target.len);
	str_putc(&text, ' ');
	str_add(&text, body.p ? body.p : "", body.len);
	if (!slice_starts(head->target, "/stream")) {
		exchange_reply(exchange, 200, "text/plain", str_slice(&text));
		return;
	}
	exchange_begin(exchange, 200, "text/plain");
	exchange_write(exchange, slice_of("one"));
	exchange_write(exchange, slice_of("two"));
	exchange_end(exchange, !slice_is(head->target, "/stream/cut"));
}

static void drive_later(evutil_socket_t fd, short what, void *ctx)
{
	drive_answer(ctx);
}

static unsigned drive_n_missed; /* bodies that did not come */

static void drive_on_body(void *arg, bool is_there)
{
	if (is_there) {
		drive_answer(arg);
		return;
	}
	drive_n_missed++;
	exchange_end(arg, false);
}

/* "/ask/no" is answered without its body. */
static void drive_asked(evutil_socket_t fd, short what, void *ctx)
{
	struct exchange *exchange = ctx;

	if (slice_starts(exchange_head(exchange)->target, "/ask/no"))
		drive_answer(exchange);
	else
		exchange_read_body(exchange, drive_on_body, exchange);
}

static void drive_on_request(void *ctx, struct exchange *exchange)
{
	struct drive *drive = ctx;
	static const struct timeval now = {0};

	drive->n++;
	if (slice_starts(exchange_head(exchange)->target, "/ask/later"))
		event_base_once(drive->base, -1, EV_TIMEOUT, drive_asked, exchange, &now);
	else if (slice_starts(exchange_head(exchange)->target, "/ask"))
		drive_asked(-1, 0, exchange);
	else if (slice_starts(exchange_head(exchange)->target, "/later"))
		event_base_once(drive->base, -1, EV_TIMEOUT, drive_later, exchange, &now);
	else
		drive_answer(exchange);
}

static void drive_open(struct drive *drive)
{
	struct http_handler handler = {
		.plan = drive_plan, .on_request = drive_on_request, .ctx = drive};
	int pair[2];

	signal(SIGPIPE, SIG_IGN); /* as the server does */
	*drive = (struct drive){.base = event_base_new(), .bodies.max = DRIVE_BODIES_MAX};
	handler.bodies = &drive->bodies;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	drive->conns = http_conn_new(drive->base, &handler);
	drive->fd = pair[0];
	http_conn_add(drive->conns, pair[1], NULL, &(struct http_peer){.address = "test"});
}

/* Until nothing more happens at once. */
static void drive_turn(struct drive *drive)
{
	char buf[4096];
	ssize_t n = 0;

	for (int idle = 0; idle < 3;) {
		event_base_loop(drive->base, EVLOOP_NONBLOCK);
		n = recv(drive->fd, buf, sizeof(buf), 0);
		if (n > 0)
			str_add(&drive->out, buf, (size_t)n);
		drive->is_closed |= n == 0 || (n < 0 && errno != EAGAIN);
		idle = n > 0 ? 0 : idle + 1;
	}
}

/* False where the other side takes no more. */
static bool drive_send(struct drive *drive, struct slice bytes, size_t step)
{
	while (bytes.len > 0) {
		size_t want = bytes.len < step ? bytes.len : step;
		ssize_t n = send(drive->fd, bytes.p, want, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0) {
			bytes.p += n;
			bytes.len -= (size_t)n;
		}
		drive_turn(drive);
	}
	return true;
}

static void drive_close(struct drive *drive)
{
	http_conn_free(drive->conns);
	event_base_loop(drive->base, EVLOOP_NONBLOCK); /* answers that are still to come */
	event_base_free(drive->base);
	close(drive->fd);
	str_done(&drive->out);
}

#endif
