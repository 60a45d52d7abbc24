/* SPDX-License-Identifier: Apache-2.0 */
/* Measured on two cores: pipes of 256 KiB carry as much as those of 1 MiB, and the kernel gives one uid only 64 MiB of
 * them; a flow that finds none goes on by copying. */
#include "gateway/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/mem.h"

#define SPLICE_FROM (1u << 20) /* bytes one way */
#define PIPE_BYTES  (256u << 10)
#define PIPES_MAX   64
#define HELD_MAX    (16u << 20) /* in memory, all flows together: beyond, they read little at once */
#define SMALL_CHUNK 2048
#define TURN_BYTES  (1u << 20)

static void drop_rest(struct relay *relay, struct relay_pool *pool)
{
	if (!relay->rest)
		return;
	free(relay->rest);
	relay->rest = NULL;
	pool->held -= relay->at + relay->left;
	relay->at = relay->left = 0;
}

static void keep_rest(struct relay *relay, struct relay_pool *pool, const char *p, size_t len)
{
	relay->rest = mem_copy(p, len);
	relay->at = 0;
	relay->left = len;
	pool->held += len;
}

void relay_done(struct relay *relay, struct relay_pool *pool)
{
	drop_rest(relay, pool);
	if (!relay->pipe[0])
		return;
	close(relay->pipe[0]);
	close(relay->pipe[1]);
	relay->pipe[0] = 0;
	pool->pipes--;
}

/* Descriptor 0 is never a pipe's: main() fills the standard ones. */
static void want_pipe(struct relay *relay, struct relay_pool *pool)
{
	relay->no_pipe = true;
	if (pool->pipes >= PIPES_MAX || pipe2(relay->pipe, O_NONBLOCK | O_CLOEXEC) < 0)
		return;
	(void)fcntl(relay->pipe[1], F_SETPIPE_SZ, (int)PIPE_BYTES); /* else of the usual size */
	pool->pipes++;
}

static int sink_error(struct relay *relay)
{
	relay->sink_failed = true;
	return -errno;
}

/* 1: all out, 0: the sink is full. */
static int put_rest(struct relay *relay, struct relay_pool *pool, int sink)
{
	while (relay->left > 0) {
		ssize_t n = send(sink, relay->rest + relay->at, relay->left, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? 0 : sink_error(relay);
		relay->at += (size_t)n;
		relay->left -= (size_t)n;
		relay->bytes += (uint64_t)n;
	}
	drop_rest(relay, pool);
	return 1;
}

/* Bytes moved; 0: nothing to read or its end; the rest that the sink did not take is kept. */
static ssize_t copy_chunk(struct relay *relay, struct relay_pool *pool, int source, int sink)
{
	size_t max = pool->held > HELD_MAX ? SMALL_CHUNK : pool->chunk_len;
	ssize_t got = recv(source, pool->chunk, max, 0), put;

	if (got <= 0) {
		relay->eof = got == 0;
		return got == 0 || errno == EAGAIN ? 0 : -errno;
	}
	put = send(sink, pool->chunk, (size_t)got, MSG_NOSIGNAL);
	if (put < 0 && errno != EAGAIN)
		return sink_error(relay);
	if (put < 0)
		put = 0;
	relay->bytes += (uint64_t)put;
	if (put < got)
		keep_rest(relay, pool, pool->chunk + put, (size_t)(got - put));
	return got;
}

static int copy(struct relay *relay, struct relay_pool *pool, int source, int sink)
{
	for (size_t moved = 0; moved < TURN_BYTES;) {
		ssize_t n;
		int r = put_rest(relay, pool, sink);

		if (r <= 0)
			return r < 0 ? r : RELAY_WAIT_SINK;
		if (relay->eof)
			return RELAY_WAIT_SOURCE;
		n = copy_chunk(relay, pool, source, sink);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return RELAY_WAIT_SOURCE;
		moved += (size_t)n;
	}
	return RELAY_AGAIN;
}

/* Into the pipe. 1: something came or its end; 0: nothing to read, or no room. */
static int fill(struct relay *relay, int source)
{
	ssize_t n;

	if (relay->eof || relay->left >= PIPE_BYTES)
		return 0;
	n = splice(
		source, NULL, relay->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	relay->eof = n == 0;
	relay->left += (size_t)n;
	return 1;
}

/* Out of it. 1: something went, 0: nothing there, or the sink is full. */
static int drain(struct relay *relay, int sink)
{
	ssize_t n;

	if (relay->left == 0)
		return 0;
	n = splice(
		relay->pipe[0], NULL, sink, NULL, relay->left, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0)
		return errno == EAGAIN ? 0 : sink_error(relay);
	relay->left -= (size_t)n;
	relay->bytes += (uint64_t)n;
	return n > 0;
}

static int through_pipe(struct relay *relay, int source, int sink)
{
	uint64_t until = relay->bytes + TURN_BYTES;

	while (relay->bytes < until) {
		int in = fill(relay, source);
		int out = in < 0 ? in : drain(relay, sink);

		if (out < 0)
			return out;
		if (in == 0 && out == 0)
			return relay->left > 0 ? RELAY_WAIT_SINK : RELAY_WAIT_SOURCE;
	}
	return RELAY_AGAIN;
}

int relay_pump(struct relay *relay, struct relay_pool *pool, int source, int sink)
{
	int r;

	if (relay->is_shut)
		return RELAY_WAIT_SOURCE;
	if (!relay->no_pipe && !relay->rest && relay->bytes >= SPLICE_FROM)
		want_pipe(relay, pool);
	r = relay->pipe[0] ? through_pipe(relay, source, sink) : copy(relay, pool, source, sink);
	if (r < 0 || !relay->eof || relay->left > 0)
		return r;
	relay->is_shut = true;
	if (shutdown(sink, SHUT_WR) < 0 && errno != ENOTCONN)
		return sink_error(relay);
	return RELAY_WAIT_SOURCE;
}
