/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event/event.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define READ_STEP 65536

struct conn {
	int sock;
	struct loop_io *io;
	struct conn_handler handler;
	struct str in, out;
	size_t sent; /* of out */
	void *tag;
	bool is_gone, wants_end;
	bool is_narrow, may_private;
	bool owes_drained; /* somebody was told that it is full, and waits */
	int depth;         /* inside a callback: not freed under it */
	bool is_freed;
};

static void update(struct conn *conn)
{
	bool writes = conn->out.len > conn->sent || conn->owes_drained;

	loop_io_set(conn->io, writes ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void release(struct conn *conn)
{
	str_done(&conn->in);
	str_done(&conn->out);
	free(conn);
}

static void shut(struct conn *conn)
{
	loop_io_free(conn->io);
	conn->io = NULL;
	close(conn->sock);
	conn->sock = -1;
}

void conn_free(struct conn *conn)
{
	if (!conn || conn->is_freed)
		return;
	conn->is_freed = true;
	shut(conn);
	if (conn->depth == 0)
		release(conn);
}

static void gone(struct conn *conn)
{
	if (conn->is_gone || conn->is_freed)
		return;
	conn->is_gone = true;
	conn->handler.on_gone(conn->handler.ctx, conn);
	conn_free(conn);
}

static void drop_sent(struct conn *conn)
{
	memmove(conn->out.p, conn->out.p + conn->sent, conn->out.len - conn->sent);
	conn->out.len -= conn->sent;
	conn->sent = 0;
}

/* Sends what it can; false where the client is gone. */
static bool push_out(struct conn *conn)
{
	while (conn->sent < conn->out.len) {
		ssize_t n = send(conn->sock, conn->out.p + conn->sent, conn->out.len - conn->sent,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		conn->sent += (size_t)n;
		if (conn->sent > CONN_HIGH)
			drop_sent(conn);
	}
	str_reset(&conn->out);
	conn->sent = 0;
	return true;
}

static void handle_frames(struct conn *conn)
{
	size_t done = 0;

	while (!conn->is_freed) {
		struct wire_frame frame;
		struct slice rest = {.p = conn->in.p + done, .len = conn->in.len - done};
		long n = wire_take(rest, &frame);

		if (n < 0)
			gone(conn);
		if (n <= 0)
			break;
		done += (size_t)n;
		conn->handler.on_frame(conn->handler.ctx, conn, &frame);
	}
	if (done == 0)
		return;
	memmove(conn->in.p, conn->in.p + done, conn->in.len - done);
	conn->in.len -= done;
}

static void read_in(struct conn *conn)
{
	ssize_t n;

	str_reserve(&conn->in, READ_STEP);
	n = recv(conn->sock, conn->in.p + conn->in.len, READ_STEP, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		gone(conn);
		return;
	}
	conn->in.len += (size_t)n;
	handle_frames(conn);
}

static void on_ready(void *ctx, unsigned what)
{
	struct conn *conn = ctx;

	conn->depth++;
	if (what & LOOP_READ)
		read_in(conn);
	if (!conn->is_freed && (what & LOOP_WRITE)) {
		if (!push_out(conn)) {
			gone(conn);
		} else if (conn->out.len == 0) {
			conn->owes_drained = false;
			conn->handler.on_drained(conn->handler.ctx, conn);
		}
	}
	conn->depth--;
	if (!conn->is_freed)
		update(conn);
	else if (conn->depth == 0)
		release(conn);
}

struct conn *conn_new(struct loop *loop, int sock, const struct conn_handler *handler)
{
	struct conn *conn = new0(struct conn);

	conn->sock = sock;
	conn->handler = *handler;
	conn->io = loop_io_new(loop, sock, LOOP_READ, on_ready, conn);
	return conn;
}

void conn_send(struct conn *conn, enum wire_type type, struct slice payload)
{
	if (conn->is_freed || conn->is_gone)
		return;
	wire_add(&conn->out, type, payload);
	/* A client that is gone is noticed by the loop: no callback from inside a send. */
	(void)push_out(conn);
	update(conn);
}

void conn_answer_ok(struct conn *conn, struct slice members)
{
	scoped_str struct str out = {0};

	str_puts(&out, "{\"ok\":true");
	if (members.len > 2) {
		str_putc(&out, ',');
		str_add(&out, members.p + 1, members.len - 1);
	} else {
		str_putc(&out, '}');
	}
	conn_send(conn, WIRE_JSON, str_slice(&out));
}

int conn_answer_fd(struct conn *conn, int fd, struct err *err)
{
	struct pollfd p = {.fd = conn->sock, .events = POLLOUT};
	scoped_fd int own = fd;
	scoped_str struct str out = {0};
	ssize_t n;

	if (conn->is_freed || conn->is_gone)
		return 0;
	if (conn_queued(conn) > 0 || poll(&p, 1, 0) != 1) /* sending would wait, and so would all */
		return err_set(err, -EBUSY, "take what was answered before you ask for this");
	wire_add(&out, WIRE_JSON, slice_of("{\"ok\":true}"));
	n = fdio_send(conn->sock, out.p, out.len, &own, 1);
	if (n < 0)
		return err_set(err, (int)n, "hand over a descriptor: %m");
	str_add(&conn->out, out.p + n, out.len - (size_t)n); /* none: it is short */
	update(conn);
	return 0;
}

void conn_answer_error(struct conn *conn, int r, const struct err *err)
{
	scoped_str struct str out = {0};
	struct jsonw j = jsonw_to(&out);

	jsonw_object(&j);
	jsonw_kbool(&j, "ok", false);
	jsonw_ktext(&j, "error", err->msg);
	jsonw_ktext(&j, "errno", event_errno_name(-r));
	jsonw_object_end(&j);
	conn_send(conn, WIRE_JSON, str_slice(&out));
}

bool conn_is_full(struct conn *conn)
{
	bool is_full = conn_queued(conn) > CONN_HIGH;

	conn->owes_drained |= is_full;
	return is_full;
}

size_t conn_queued(const struct conn *conn)
{
	return conn->out.len - conn->sent;
}

void conn_finish(struct conn *conn, int deadline_ms)
{
	int64_t until = clock_mono_ns() + deadline_ms * CLOCK_NS_PER_MS;

	while (!conn->is_freed && conn_queued(conn) > 0) {
		struct pollfd p = {.fd = conn->sock, .events = POLLOUT};
		int64_t left_ms = (until - clock_mono_ns()) / CLOCK_NS_PER_MS;

		if (left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0 || !push_out(conn))
			return;
	}
}

void conn_set_tag(struct conn *conn, void *tag)
{
	conn->tag = tag;
}

void *conn_tag(const struct conn *conn)
{
	return conn->tag;
}

void conn_set_wants_end(struct conn *conn)
{
	conn->wants_end = true;
}

bool conn_wants_end(const struct conn *conn)
{
	return conn->wants_end;
}

void conn_narrow(struct conn *conn, bool may_private)
{
	if (!conn->is_narrow)
		conn->may_private = may_private;
	conn->is_narrow = true;
}

bool conn_is_narrow(const struct conn *conn)
{
	return conn->is_narrow;
}

bool conn_may_private(const struct conn *conn)
{
	return !conn->is_narrow || conn->may_private;
}
