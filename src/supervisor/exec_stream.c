/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/exec_stream.h"

#include <errno.h>
#include <unistd.h>

#include "util/fdio.h"

#define READ_SIZE    65536
#define CATCH_UP_MAX (4 << 20) /* a writer left behind may go on for ever */

static void close_fd(struct exec_stream *stream)
{
	if (stream->fd < 0)
		return;
	loop_io_free(stream->io);
	stream->io = NULL;
	close(stream->fd);
	stream->fd = -1;
}

static void take_in(struct exec_stream *stream, const char *p, size_t len)
{
	if (stream->file && record_output_write(stream->file, p, len) < 0) {
		record_output_free(
			stream->file); /* the journal tells of a full disk; hash and length go on */
		stream->file = NULL;
	}
	if (stream->cast)
		(void)record_cast_output(stream->cast, p, len); /* as above */
	if (stream->is_late) {
		stream->late_bytes += len;
		return;
	}
	clip_add(&stream->clip, p, len);
	if (stream->conn)
		conn_send(stream->conn, stream->type, (struct slice){.p = p, .len = len});
}

/* Bytes read; 0 where there is no more for now; negative at the end. */
static ssize_t read_some(struct exec_stream *stream)
{
	char buf[READ_SIZE];
	ssize_t n = read(stream->fd, buf, sizeof(buf));

	if (n > 0)
		take_in(stream, buf, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n > 0 ? n : -1; /* EIO: a terminal whose last holder is gone */
}

static void on_readable(void *ctx, unsigned what)
{
	struct exec_stream *stream = ctx;

	if (read_some(stream) < 0) {
		close_fd(stream);
		if (stream->on_end)
			stream->on_end(stream->ctx);
		return;
	}
	if (stream->conn && conn_is_full(stream->conn))
		loop_io_set(stream->io,
			0); /* the pipe fills, and the writer waits for the reader, as without us */
}

void exec_stream_init(struct exec_stream *stream, struct loop *loop, int fd, enum wire_type type)
{
	*stream = (struct exec_stream){.fd = fd, .type = type};
	clip_init(&stream->clip);
	(void)fdio_set_nonblock(fd, true);
	stream->io = loop_io_new(loop, fd, LOOP_READ, on_readable, stream);
}

void exec_stream_done(struct exec_stream *stream)
{
	close_fd(stream);
	clip_done(&stream->clip);
	record_output_free(stream->file);
	record_cast_free(stream->cast);
	stream->file = NULL;
	stream->cast = NULL;
}

void exec_stream_catch_up(struct exec_stream *stream)
{
	for (ssize_t n = 0, all = 0; stream->fd >= 0 && all < CATCH_UP_MAX; all += n) {
		n = read_some(stream);
		if (n < 0)
			close_fd(stream);
		if (n <= 0)
			return;
	}
}

void exec_stream_cut(struct exec_stream *stream)
{
	close_fd(stream);
	if (stream->on_end)
		stream->on_end(stream->ctx);
}

void exec_stream_attach(struct exec_stream *stream, struct conn *conn)
{
	stream->conn = conn;
	exec_stream_resume(stream);
}

void exec_stream_resume(struct exec_stream *stream)
{
	if (stream->io)
		loop_io_set(stream->io, LOOP_READ);
}
