/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/flow_head.h"
#include "gateway/gateway_internal.h"
#include "gateway/lookup.h"
#include "gateway/plane.h"
#include "gateway/proxy_wire.h"
#include "spec/spec_rule.h"
#include "util/clock.h"

/* Longer than the kernel's own patience with SYNs (127 s), so that its reason comes first. */
#define DIAL_NS     (130 * CLOCK_NS_PER_S)
#define KEEPALIVE_S 120
#define PLANE_NS    (5 * CLOCK_NS_PER_S)
#define PROXY_NS    (9 * CLOCK_NS_PER_S) /* for connecting and answering together */

void dial_cancel(struct dial *dial)
{
	if (dial->state == DIAL_IDLE)
		return;
	poller_timer_stop(dial->gw->poller, &dial->timer);
	poller_remove(dial->gw->poller, &dial->io);
	plane_cancel(dial);
	lookup_cancel(dial->lookup);
	dial->lookup = NULL;
	if (dial->fd >= 0)
		close(dial->fd);
	dial->fd = -1;
	dial->state = DIAL_IDLE;
	if (dial->request.p)
		explicit_bzero(dial->request.p, dial->request.len); /* holds credentials */
	str_done(&dial->request);
	str_done(&dial->answer);
}

void dial_take(struct dial *dial, struct poller_io *ret_io)
{
	*ret_io = (struct poller_io){.fd = -1};
	if (dial->state == DIAL_IDLE)
		return;
	poller_move(dial->gw->poller, &dial->io, ret_io, NULL, NULL);
	dial->fd = -1;
	dial_cancel(dial);
}

/* What on_done finds is stopped; it may free what the dial lies in. */
static void finish(struct dial *dial, int r)
{
	poller_timer_stop(dial->gw->poller, &dial->timer);
	dial->state = DIAL_DONE;
	if (r < 0)
		dial_cancel(dial);
	dial->on_done(dial->ctx, r);
}

static void ask_proxy(struct dial *dial)
{
	while (dial->sent < dial->request.len) {
		ssize_t n = send(dial->fd, dial->request.p + dial->sent,
			dial->request.len - dial->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			finish(dial, -errno);
			return;
		}
		dial->sent += (size_t)n;
	}
}

/* A byte at a time: what follows the head is upstream's. It comes once for a connection, and is short. */
static void read_proxy(struct dial *dial)
{
	char byte;
	ssize_t n;
	int r = -EAGAIN;

	while (r == -EAGAIN && (n = recv(dial->fd, &byte, 1, 0)) != 0) {
		if (n < 0) {
			if (errno == EAGAIN)
				return;
			break;
		}
		str_putc(&dial->answer, byte);
		r = proxy_wire_answer(str_slice(&dial->answer));
	}
	if (r == -EACCES)
		dial->why = "the upstream proxy wants other credentials";
	else
		dial->why = "the upstream proxy did not open a way";
	finish(dial, r == -EAGAIN ? -ECONNRESET : r);
}

static void on_connected(struct dial *dial)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (dial->io.ready & POLLER_ERROR &&
		getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error != 0 || dial->request.len == 0) {
		finish(dial, -error);
		return;
	}
	dial->state = DIAL_ASKING;
	ask_proxy(dial);
}

static void on_ready(void *ctx)
{
	struct dial *dial = ctx;

	if (dial->state == DIAL_CONNECTING && dial->io.ready & (POLLER_WRITE | POLLER_ERROR))
		on_connected(dial);
	else if (dial->state == DIAL_ASKING && dial->sent < dial->request.len)
		ask_proxy(dial);
	else if (dial->state == DIAL_ASKING)
		read_proxy(dial);
}

static void on_late(void *ctx)
{
	struct dial *dial = ctx;

	if (dial->request.len > 0)
		dial->why = "the upstream proxy does not answer";
	finish(dial, dial->request.len > 0 ? -EHOSTUNREACH : -ETIMEDOUT);
}

static int open_socket(const struct sockaddr_storage *to, socklen_t len)
{
	struct linger abrupt = {.l_onoff = 1};
	int one = 1;
	int idle_s = KEEPALIVE_S;
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* None of these can fail; the program's own keepalive gets no further than to us. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof(abrupt)); /* see flow_close() */
	if (connect(fd, (const struct sockaddr *)to, len) < 0 && errno != EINPROGRESS) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int connect_to(struct dial *dial, const uint8_t address[16], uint16_t port)
{
	struct sockaddr_storage to;
	socklen_t len = flow_sockaddr(address, port, &to);
	int fd = open_socket(&to, len), r;

	if (fd < 0)
		return fd;
	r = poller_add(dial->gw->poller, &dial->io, fd, on_ready, dial);
	if (r < 0) {
		close(fd);
		return r;
	}
	dial->fd = fd;
	dial->state = DIAL_CONNECTING;
	return 0;
}

static void on_proxy_found(void *ctx, int r, const uint8_t (*addresses)[16], size_t n)
{
	struct dial *dial = ctx;

	dial->lookup = NULL;
	r = n > 0 ? connect_to(dial, addresses[0], dial->proxy_port) : -EHOSTUNREACH;
	if (r < 0)
		finish(dial, r);
}

/* Everything goes there, or nowhere. */
static int start_proxy(
	struct dial *dial, const uint8_t address[16], uint16_t port, const char *host)
{
	const struct gateway_proxy *proxy = &dial->gw->proxy;
	const struct spec_network *network = &dial->gw->config.network;
	char text[FLOW_ADDRESS_SIZE];
	uint8_t own[16];

	flow_address_text(address, text);
	proxy_wire_connect(&dial->request, host ? host : text, port, network->proxy_user,
		network->proxy_password);
	dial->proxy_port = proxy->port; /* whichever takes its place meanwhile */
	dial->why = "the upstream proxy cannot be reached";
	poller_timer_set(dial->gw->poller, &dial->timer, PROXY_NS);
	if (spec_rule_address(str_slice(&proxy->host), own) == 0)
		return connect_to(dial, own, proxy->port);
	dial->state = DIAL_RESOLVING;
	dial->lookup = lookup_start(dial->gw, proxy->host.p, on_proxy_found, dial);
	return 0;
}

int dial_start(struct gateway *gw, struct dial *dial, const uint8_t address[16], uint16_t port,
	const char *host, void (*on_done)(void *ctx, int r), void *ctx)
{
	int r;

	*dial = (struct dial){.gw = gw, .fd = -1, .io = {.fd = -1}, .on_done = on_done, .ctx = ctx};
	dial->timer = (struct poller_timer){.on_time = on_late, .ctx = dial};
	if (gw->proxy.host.len > 0) {
		r = start_proxy(dial, address, port, host);
	} else {
		poller_timer_set(gw->poller, &dial->timer, DIAL_NS);
		r = connect_to(dial, address, port);
	}
	if (r < 0) {
		dial->state = DIAL_CONNECTING; /* so that what it holds goes */
		dial_cancel(dial);
	}
	return r;
}

int dial_start_plane(
	struct gateway *gw, struct dial *dial, void (*on_done)(void *ctx, int r), void *ctx)
{
	int r;

	*dial = (struct dial){.gw = gw,
		.fd = -1,
		.io = {.fd = -1},
		.why = "the control plane cannot be reached",
		.on_done = on_done,
		.ctx = ctx};
	dial->timer = (struct poller_timer){.on_time = on_late, .ctx = dial};
	r = gw->plane ? plane_ask(gw->plane, dial) : -ECONNREFUSED;
	if (r < 0)
		return r;
	poller_timer_set(gw->poller, &dial->timer, PLANE_NS);
	dial->state = DIAL_PLANE;
	return 0;
}

void dial_adopt(struct dial *dial, int fd)
{
	int r = fd < 0 ? fd : poller_add(dial->gw->poller, &dial->io, fd, on_ready, dial);

	if (fd >= 0 && r < 0)
		close(fd);
	else if (fd >= 0)
		dial->fd = fd;
	finish(dial, r < 0 ? r : 0);
}
