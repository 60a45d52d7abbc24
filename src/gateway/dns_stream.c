/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dns_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/dns_work.h"
#include "gateway/gateway_internal.h"
#include "util/clock.h"
#include "util/mem.h"

#define STREAMS_MAX 256
#define IDLE_NS     (30 * CLOCK_NS_PER_S)
#define PREFIX      2 /* bytes that say how long a message is */
#define READ_BYTES  4096
#define IN_MAX      (PREFIX + 4096) /* a longer question is none */

struct dns_stream {
	struct dns_streams *all;
	struct dns_stream *next, **at;
	struct flow_head head;
	struct poller_io io;
	struct poller_timer timer;
	struct str in, out;
	size_t sent;
	uint64_t bytes_in, bytes_out;
	int64_t since_ns;
	struct dns_work *work;
	bool eof, is_serving, is_over;
	const char *error;
};

struct dns_streams {
	struct gateway *gw;
	struct dns_stream *first;
	size_t n;
};

static void serve(struct dns_stream *stream);

struct dns_streams *dns_streams_new(struct gateway *gw)
{
	struct dns_streams *streams = new0(struct dns_streams);

	streams->gw = gw;
	return streams;
}

/* Questions are told one by one; what was none, here. */
static void tell_fault(struct dns_stream *stream)
{
	struct gateway *gw = stream->all->gw;
	struct event ev = flow_head_event(&stream->head, EVENT_NET_FLOW);

	event_set(&ev, bytes_out, (event_int)stream->bytes_out);
	event_set(&ev, bytes_in, (event_int)stream->bytes_in);
	event_set(&ev, duration_ns, poller_now_ns(gw->poller) - stream->since_ns);
	event_set(&ev, failed, true);
	event_set_text(&ev, error, stream->error);
	channel_event(gw->channel, stream->head.owner.cgroup, &ev);
}

static void stream_free(struct dns_stream *stream)
{
	struct gateway *gw = stream->all->gw;
	int fd = stream->io.fd;

	dns_work_cancel(stream->work);
	if (stream->error)
		tell_fault(stream);
	poller_timer_stop(gw->poller, &stream->timer);
	if (fd >= 0) {
		poller_forget(gw->poller, &stream->io);
		flow_close(fd, stream->error != NULL);
	}
	*stream->at = stream->next;
	if (stream->next)
		stream->next->at = stream->at;
	stream->all->n--;
	gw->n_flows--;
	flow_head_done(&stream->head);
	str_done(&stream->in);
	str_done(&stream->out);
	free(stream);
}

void dns_streams_free(struct dns_streams *streams)
{
	if (!streams)
		return;
	while (streams->first)
		stream_free(streams->first);
	free(streams);
}

static void on_idle(void *ctx)
{
	stream_free(ctx);
}

/* False: the connection is lost. */
static bool send_out(struct dns_stream *stream)
{
	while (stream->sent < stream->out.len) {
		ssize_t n = send(stream->io.fd, stream->out.p + stream->sent,
			stream->out.len - stream->sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN;
		stream->sent += (size_t)n;
		stream->bytes_in += (uint64_t)n;
	}
	str_reset(&stream->out);
	stream->sent = 0;
	return true;
}

static bool read_in(struct dns_stream *stream)
{
	while (!stream->eof && stream->in.len < IN_MAX) {
		ssize_t n;

		str_reserve(&stream->in, READ_BYTES);
		n = recv(stream->io.fd, stream->in.p + stream->in.len, READ_BYTES, 0);
		if (n < 0)
			return errno == EAGAIN;
		stream->eof = n == 0;
		stream->in.len += (size_t)n;
		stream->bytes_out += (uint64_t)n;
	}
	return true;
}

static void on_reply(void *ctx, struct slice message)
{
	struct dns_stream *stream = ctx;
	uint8_t prefix[PREFIX] = {(uint8_t)(message.len >> 8), (uint8_t)message.len};

	stream->work = NULL;
	if (message.len == 0) {
		stream->is_over = true;
		stream->error = "not a DNS question";
	} else {
		str_add(&stream->out, prefix, sizeof(prefix));
		str_add(&stream->out, message.p, message.len);
	}
	if (!stream->is_serving)
		serve(stream);
}

/* Starts with the next question that is whole. False: there is none. */
static bool ask_next(struct dns_stream *stream)
{
	const uint8_t *p = (const uint8_t *)stream->in.p;
	struct dns_origin origin = {.protocol = "tcp",
		.owner = stream->head.owner,
		.is_stream = true,
		.reply = on_reply,
		.ctx = stream};
	size_t len = stream->in.len < PREFIX ? 0 : (size_t)p[0] << 8 | p[1];

	if (stream->in.len >= PREFIX && len > IN_MAX - PREFIX) {
		stream->is_over = true;
		stream->error = "not a DNS question";
		return false;
	}
	if (stream->in.len < PREFIX || stream->in.len < PREFIX + len)
		return false;
	memcpy(origin.server, stream->head.address, sizeof(origin.server));
	stream->work = dns_work_start(
		stream->all->gw, (struct slice){.p = stream->in.p + PREFIX, .len = len}, &origin);
	stream->in.len -= PREFIX + len;
	memmove(stream->in.p, stream->in.p + PREFIX + len, stream->in.len);
	return true;
}

static void serve(struct dns_stream *stream)
{
	bool is_lost = false;

	stream->is_serving = true;
	while (!is_lost && !stream->work && !stream->is_over) {
		is_lost = !send_out(stream);
		if (is_lost || stream->out.len > 0)
			break;
		is_lost = !read_in(stream);
		if (is_lost || !ask_next(stream))
			break;
	}
	stream->is_serving = false;
	if (!is_lost)
		is_lost = !send_out(stream);
	if (is_lost || ((stream->is_over || stream->eof) && !stream->work && stream->out.len == 0))
		stream_free(stream);
	else
		poller_timer_set(stream->all->gw->poller, &stream->timer, IDLE_NS);
}

static void on_ready(void *ctx)
{
	serve(ctx);
}

void dns_stream_open(struct gateway *gw, struct flow_head *head, int fd)
{
	struct dns_streams *all = gw->dns_streams;
	struct dns_stream *stream = new0(struct dns_stream);

	*stream = (struct dns_stream){.all = all, .head = *head, .io = {.fd = -1}};
	*head = (struct flow_head){0};
	stream->since_ns = poller_now_ns(gw->poller);
	stream->timer = (struct poller_timer){.on_time = on_idle, .ctx = stream};
	stream->next = all->first;
	stream->at = &all->first;
	if (stream->next)
		stream->next->at = &stream->next;
	all->first = stream;
	all->n++;
	gw->n_flows++;
	if (all->n > STREAMS_MAX || poller_add(gw->poller, &stream->io, fd, on_ready, stream) < 0) {
		flow_close(fd, true);
		stream->error = "too many connections for names";
		stream_free(stream);
		return;
	}
	poller_timer_set(gw->poller, &stream->timer, IDLE_NS);
}
