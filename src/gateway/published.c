/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is accepted outside, and one is made to 127.0.0.1 inside, or to ::1 where nobody listens there. Nothing
 * inside: the one outside is reset, as a port where nobody listens would. */
#include "gateway/published.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/gateway_internal.h"
#include "gateway/limits.h"
#include "gateway/relay.h"
#include "gateway/traffic.h"
#include "proto/gateway_wire.h"
#include "util/mem.h"

#define ACCEPTS_TURN 64 /* others have their turn */

enum side { OUTSIDE, INSIDE, N_SIDES };

struct visit {
	struct published *all;
	struct visit *next, **at;
	struct flow_head head; /* address, port: inside */
	char from[GATEWAY_FROM_SIZE];
	struct poller_io io[N_SIDES];
	struct relay relay[N_SIDES]; /* by where the bytes come from */
	int64_t since_ns;
	bool is_connected;
	bool is_guest; /* came by published_visit() */
};

struct listener {
	struct published *all;
	struct poller_io io;
	uint16_t port; /* inside */
};

struct published {
	struct gateway *gw;
	struct relay_pool pool;
	struct listener listeners[GATEWAY_PUBLISHED_MAX];
	size_t n_listeners;
	struct visit *first;
};

static const uint8_t loopback[][16] = {
	{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
	{[15] = 1},
};

/* ---- its end ---- */

static void tell_accept(struct visit *visit, int result)
{
	struct event ev = flow_head_event(&visit->head, EVENT_NET_ACCEPT);

	event_set_text(&ev, from, visit->from);
	if (result < 0)
		event_set(&ev, result, -result);
	channel_event(visit->all->gw->channel, 0, &ev);
	if (visit->is_guest) {
		unsigned char answer = (unsigned char)-result;

		/* The first byte that goes there: it fits, and who has gone needs none. */
		(void)send(visit->io[OUTSIDE].fd, &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

static void tell_flow(struct visit *visit, int result)
{
	struct gateway *gw = visit->all->gw;
	struct event ev = flow_head_event(&visit->head, EVENT_NET_FLOW);

	event_set_text(&ev, direction, "in");
	event_set_text(&ev, from, visit->from);
	event_set(&ev, bytes_out, (event_int)visit->relay[INSIDE].bytes);
	event_set(&ev, bytes_in, (event_int)visit->relay[OUTSIDE].bytes);
	event_set(&ev, duration_ns, poller_now_ns(gw->poller) - visit->since_ns);
	if (result < 0)
		event_set_text(&ev, error, event_errno_name(-result));
	channel_event(gw->channel, 0, &ev);
}

/* result: 0, or why it was cut. */
static void visit_end(struct visit *visit, int result)
{
	struct gateway *gw = visit->all->gw;

	if (visit->is_connected)
		tell_flow(visit, result);
	for (int side = 0; side < N_SIDES; side++) {
		int fd = visit->io[side].fd;

		poller_remove(gw->poller, &visit->io[side]);
		relay_done(&visit->relay[side], &visit->all->pool);
		if (fd >= 0)
			flow_close(fd, result < 0);
	}
	*visit->at = visit->next;
	if (visit->next)
		visit->next->at = visit->at;
	gw->n_flows--;
	flow_head_done(&visit->head);
	free(visit);
}

/* ---- what passes ---- */

/* One direction. A negative errno; 1: it has more for its next turn. */
static int pass(struct visit *visit, enum side from)
{
	struct poller_io *source = &visit->io[from], *sink = &visit->io[!from];
	int r;

	if (!(source->ready & POLLER_READ) || !(sink->ready & POLLER_WRITE))
		return 0;
	r = relay_pump(&visit->relay[from], &visit->all->pool, source->fd, sink->fd);
	if (r == RELAY_WAIT_SOURCE)
		source->ready &= ~POLLER_READ;
	else if (r == RELAY_WAIT_SINK)
		sink->ready &= ~POLLER_WRITE;
	return r < 0 ? r : r == RELAY_AGAIN;
}

/* A side that was reset while the other takes nothing would not show in reading. What a server said before it did that
 * is still passed on; a client that left wants no more. */
static int failure(struct visit *visit, enum side side)
{
	struct poller_io *io = &visit->io[side];
	int error = 0;
	socklen_t len = sizeof(error);
	ssize_t n;
	char byte;

	if (!(io->ready & POLLER_ERROR))
		return 0;
	n = side == INSIDE ? recv(io->fd, &byte, 1, MSG_PEEK) : 0;
	if (n > 0) {
		io->ready |= POLLER_READ;
		return 0;
	}
	if (n < 0 && errno != EAGAIN)
		return -errno; /* which is told once: SO_ERROR has forgotten it */
	return getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? 0 : -error;
}

/* Of a pair of Unix sockets it is known that the other side is closed, and not only shut: nothing more is wanted. */
static bool has_left(const struct visit *visit)
{
	return visit->is_guest && visit->relay[OUTSIDE].is_shut &&
	       visit->io[OUTSIDE].ready & POLLER_ERROR;
}

static void go_on(struct visit *visit)
{
	int in = failure(visit, OUTSIDE), out = failure(visit, INSIDE);

	if (in == 0 && out == 0)
		in = pass(visit, OUTSIDE);
	if (in >= 0 && out == 0)
		out = pass(visit, INSIDE);
	if (in < 0 || out < 0)
		visit_end(visit, in < 0 ? in : out);
	else if (has_left(visit) || (visit->relay[OUTSIDE].is_shut && visit->relay[INSIDE].is_shut))
		visit_end(visit, 0);
	else if (in || out)
		poller_again(visit->all->gw->poller, &visit->io[OUTSIDE]);
}

/* ---- connecting inside ---- */

static void on_ready(void *ctx);

static int connect_inside(struct visit *visit)
{
	struct gateway *gw = visit->all->gw;
	struct sockaddr_storage to;
	socklen_t len = flow_sockaddr(visit->head.address, visit->head.port, &to);
	int fd = inside_socket(gw->inside, to.ss_family, SOCK_STREAM), one = 1, r;

	if (fd < 0)
		return fd;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* speed only */
	r = connect(fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS ? -errno : 0;
	if (r == 0)
		r = poller_add(gw->poller, &visit->io[INSIDE], fd, on_ready, visit);
	if (r < 0)
		close(fd);
	return r;
}

/* The other loopback address, where there is one left. */
static int try_next(struct visit *visit)
{
	int64_t flow = visit->head.flow;

	if (visit->head.address[10] == 0)
		return -ECONNREFUSED;
	flow_head_init(
		&visit->head, "tcp", loopback[1], visit->head.port, NULL, &visit->head.owner);
	visit->head.flow = flow;
	return connect_inside(visit);
}

/* 1: connected, 0: not yet. */
static int look_connected(struct visit *visit)
{
	struct poller_io *io = &visit->io[INSIDE];
	int error = 0, fd = io->fd;
	socklen_t len = sizeof(error);

	if (!(io->ready & (POLLER_WRITE | POLLER_ERROR)))
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	if (error == 0)
		return 1;
	poller_remove(visit->all->gw->poller, io);
	close(fd);
	io->fd = -1;
	return error == ECONNREFUSED ? try_next(visit) : -error;
}

static void on_ready(void *ctx)
{
	struct visit *visit = ctx;
	int r = visit->is_connected ? 1 : look_connected(visit);

	if (r == 0)
		return;
	if (!visit->is_connected)
		tell_accept(visit, r < 0 ? r : 0);
	if (r < 0) {
		visit_end(visit, r);
		return;
	}
	visit->is_connected = true;
	go_on(visit);
}

/* ---- accepting ---- */

static void format_peer(const struct sockaddr_storage *peer, char out[GATEWAY_FROM_SIZE])
{
	char text[FLOW_ADDRESS_SIZE];
	uint8_t address[16];
	uint16_t port;

	flow_from_sockaddr(peer, address, &port);
	flow_address_text(address, text);
	(void)snprintf(out, GATEWAY_FROM_SIZE, peer->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u",
		text, port); /* fits */
}

static struct visit *visit_new(struct published *all, const char *from, uint16_t port)
{
	const struct netcatch_owner nobody = {0};
	struct gateway *gw = all->gw;
	struct visit *visit = new0(struct visit);

	*visit = (struct visit){.all = all, .next = all->first, .at = &all->first};
	if (visit->next)
		visit->next->at = &visit->next;
	all->first = visit;
	visit->io[OUTSIDE].fd = visit->io[INSIDE].fd = -1;
	visit->since_ns = poller_now_ns(gw->poller);
	flow_head_init(&visit->head, "tcp", loopback[0], port, NULL, &nobody);
	visit->head.flow = gateway_flow_number(gw);
	(void)snprintf(visit->from, sizeof(visit->from), "%s", from); /* of that size */
	gw->n_flows++;
	return visit;
}

/* r: 0, or why it must not be. Takes fd over. */
static void visit_open(struct visit *visit, int fd, int r)
{
	struct gateway *gw = visit->all->gw;
	int one = 1, added = poller_add(gw->poller, &visit->io[OUTSIDE], fd, on_ready, visit);

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* speed only */
	if (added < 0)
		flow_close(fd, true);
	if (r == 0)
		r = added < 0 ? added : connect_inside(visit);
	if (r < 0) {
		tell_accept(visit, r);
		visit_end(visit, r);
	}
}

static bool accept_one(struct listener *listener)
{
	struct gateway *gw = listener->all->gw;
	struct sockaddr_storage peer = {0};
	char from[GATEWAY_FROM_SIZE];
	const char *why;
	bool is_full;
	int fd = limits_accept(gw->limits, listener->io.fd, &peer, &is_full);

	if (fd < 0)
		return fd == -ECONNABORTED;
	format_peer(&peer, from);
	if (is_full)
		(void)limits_no_room(gw->limits);
	visit_open(visit_new(listener->all, from, listener->port), fd,
		is_full ? -EMFILE : limits_check(gw->limits, &why));
	if (is_full)
		limits_closed(gw->limits);
	return true;
}

void published_visit(struct published *all, int fd, const struct gateway_visit *asked)
{
	struct visit *visit;
	const char *why;
	int r = limits_check(all->gw->limits, &why);

	visit = visit_new(all, asked->from, asked->port);
	visit->is_guest = true;
	/* The other end is copied from: a pipe between would save nothing. */
	visit->relay[OUTSIDE].no_pipe = visit->relay[INSIDE].no_pipe = true;
	visit_open(visit, fd, r);
}

static void on_listener(void *ctx)
{
	for (int i = 0; i < ACCEPTS_TURN && accept_one(ctx); i++)
		;
}

int published_open(struct gateway *gw, struct published **ret_published, struct err *err)
{
	const struct spec_network *net = &gw->config.network;
	struct published *all = new0(struct published);

	all->gw = gw;
	all->pool = (struct relay_pool){.chunk = gw->chunk, .chunk_len = sizeof(gw->chunk)};
	for (size_t i = 0; i < net->n_publish && i < GATEWAY_PUBLISHED_MAX; i++) {
		struct listener *listener = &all->listeners[i];
		int r;

		*listener = (struct listener){
			.all = all, .port = net->publish[i].port, .io = {.fd = -1}};
		r = poller_add_level(gw->poller, &listener->io, GATEWAY_FD_PUBLISHED + (int)i,
			on_listener, listener);
		if (r < 0) {
			published_free(all);
			return err_set(err, r, "listen for published ports: %m");
		}
		all->n_listeners++;
	}
	*ret_published = all;
	return 0;
}

void published_count(const struct published *all, struct traffic *traffic)
{
	for (const struct visit *visit = all->first; visit; visit = visit->next) {
		traffic->bytes_out += visit->relay[INSIDE].bytes;
		traffic->bytes_in += visit->relay[OUTSIDE].bytes;
	}
}

void published_free(struct published *published)
{
	if (!published)
		return;
	for (size_t i = 0; i < published->n_listeners; i++)
		poller_remove(published->gw->poller, &published->listeners[i].io);
	while (published->first)
		visit_end(published->first, -ESHUTDOWN);
	free(published);
}
