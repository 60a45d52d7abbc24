/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "event/event_json.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/str.h"

#define PUSH_BYTES (64u << 10)
#define KEEP_BYTES (256u << 10) /* a buffer that grew beyond is given back */
#define READ_BYTES 16384

struct channel {
	int fd, error;
	char *sandbox;
	int64_t start_ns;
	struct traffic told;
	struct str out, in, line;
	size_t in_at; /* what of in was taken */
};

struct channel *channel_new(int fd, const char *sandbox, int64_t start_ns)
{
	struct channel *channel = new0(struct channel);

	channel->fd = fd;
	channel->sandbox = mem_dup(sandbox);
	channel->start_ns = start_ns;
	return channel;
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	free(channel->sandbox);
	str_done(&channel->out);
	str_done(&channel->in);
	str_done(&channel->line);
	free(channel);
}

int channel_push(struct channel *channel)
{
	if (channel->out.len > 0 && channel->error == 0)
		channel->error = fdio_write_all(channel->fd, channel->out.p, channel->out.len);
	if (channel->out.cap > KEEP_BYTES)
		str_done(&channel->out);
	else
		str_reset(&channel->out);
	return channel->error;
}

void channel_frame(struct channel *channel, const struct gateway_frame *frame)
{
	gateway_wire_add(&channel->out, frame);
	if (channel->out.len >= PUSH_BYTES)
		(void)channel_push(channel); /* kept, and told at the end of the turn */
}

void channel_event(struct channel *channel, uint64_t cgroup, struct event *ev)
{
	struct gateway_frame frame = {.type = GATEWAY_EVENT, .id = cgroup};

	if (ev->guest_ns == 0)
		ev->guest_ns = clock_mono_ns() - channel->start_ns;
	if (ev->kind == EVENT_NET_FLOW || ev->kind == EVENT_NET_UDP) {
		channel->told.bytes_out += (uint64_t)ev->bytes_out;
		channel->told.bytes_in += (uint64_t)ev->bytes_in;
	}
	str_reset(&channel->line);
	event_json_write(&channel->line, ev, slice_of(channel->sandbox));
	frame.rest = str_slice(&channel->line);
	channel_frame(channel, &frame);
}

struct traffic channel_told(const struct channel *channel)
{
	return channel->told;
}

int channel_read(struct channel *channel)
{
	if (channel->in_at > 0) {
		memmove(channel->in.p, channel->in.p + channel->in_at,
			channel->in.len - channel->in_at);
		channel->in.len -= channel->in_at;
		channel->in_at = 0;
	}
	for (;;) {
		ssize_t n;

		str_reserve(&channel->in, READ_BYTES);
		n = recv(channel->fd, channel->in.p + channel->in.len, READ_BYTES, MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (n == 0)
			return -ECONNRESET;
		channel->in.len += (size_t)n;
	}
}

int channel_next(struct channel *channel, struct gateway_frame *ret_frame)
{
	struct slice in = {
		.p = channel->in.p + channel->in_at, .len = channel->in.len - channel->in_at};
	long n = in.len ? gateway_wire_take(in, ret_frame) : 0;

	if (n <= 0)
		return (int)n;
	channel->in_at += (size_t)n;
	return 1;
}
