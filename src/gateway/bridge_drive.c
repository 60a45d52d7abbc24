/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes between the two sockets and a machine. What a machine did not take waits beside the side it came from
 * (relay.rest): that side is read again when it is gone. */
#include "gateway/bridge_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/gateway_internal.h"
#include "gateway/mitm.h"
#include "util/clock.h"
#include "util/mem.h"

#define TURN_BYTES  (512u << 10)
#define HELD_MAX    (16u << 20)
#define SMALL_CHUNK 2048
#define LEAVE_NS    (5 * CLOCK_NS_PER_S)
#define LEAVE_BYTES (4u << 20) /* thrown away of a request that was refused; then it is reset */

static size_t give(struct bridge *bridge, enum machine_side from, const char *p, size_t len)
{
	size_t taken = 0, n;

	do {
		n = (bridge->machine.ops->take)(bridge->machine.self, from, p + taken, len - taken);
		taken += n;
	} while (n > 0 && taken < len);
	if (from == MACHINE_CLIENT)
		bridge->bytes_out += taken;
	return taken;
}

/* What waited from before. True: nothing waits any more. */
static bool give_rest(struct bridge *bridge, enum machine_side from, size_t *moved)
{
	struct relay *relay = &bridge->side[from].relay;
	size_t n;

	if (!relay->rest)
		return true;
	n = give(bridge, from, relay->rest + relay->at, relay->left);
	relay->at += n;
	relay->left -= n;
	*moved += n;
	if (relay->left > 0)
		return false;
	relay_done(relay, &bridge->all->pool);
	return true;
}

static void keep(struct bridge *bridge, enum machine_side from, const char *p, size_t len)
{
	struct relay *relay = &bridge->side[from].relay;

	relay->rest = mem_copy(p, len);
	relay->at = 0;
	relay->left = len;
	bridge->all->pool.held += len;
}

/* A program's kernel holds its request back until the end of its handshake was received, which nothing of ours says where
 * the program takes no ticket, and ours waits 40 ms before it says so by itself. */
static void acknowledge(const struct bridge_side *side)
{
	int one = 1;

	(void)setsockopt(
		side->io.fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one)); /* speed only */
}

static int read_once(struct bridge *bridge, enum machine_side from, size_t *moved)
{
	struct bridge_side *side = &bridge->side[from];
	struct relay_pool *pool = &bridge->all->pool;
	size_t asked = pool->held > HELD_MAX ? SMALL_CHUNK : pool->chunk_len;
	ssize_t got = recv(side->io.fd, pool->chunk, asked, 0);
	bool is_opening = from == MACHINE_CLIENT && bridge->mitm && mitm_is_opening(bridge->mitm);
	size_t taken;

	if (got < 0 && errno == ECONNRESET && from == MACHINE_SERVER && side->is_shut)
		got = 0; /* it did not wait for our end */
	if (got < 0 && errno != EAGAIN)
		return -errno;
	if (got < 0) {
		side->io.ready &= ~POLLER_READ;
		return 0;
	}
	if ((size_t)got < asked && !(side->io.ready & (POLLER_END | POLLER_ERROR | POLLER_URGENT)))
		side->io.ready &= ~POLLER_READ; /* that was all; what comes next is an edge */
	*moved += (size_t)got + 1;
	if (got == 0) {
		side->eof = true;
		bridge->machine.ops->end(bridge->machine.self, from);
		return 0;
	}
	taken = give(bridge, from, pool->chunk, (size_t)got);
	if (taken < (size_t)got)
		keep(bridge, from, pool->chunk + taken, (size_t)got - taken);
	if (is_opening)
		acknowledge(side);
	return 0;
}

static int feed(struct bridge *bridge, enum machine_side from, size_t *moved)
{
	struct bridge_side *side = &bridge->side[from];

	if (side->io.fd < 0 || side->eof)
		return 0;
	if (!give_rest(bridge, from, moved) || !(side->io.ready & POLLER_READ))
		return 0;
	return read_once(bridge, from, moved);
}

static int emit(struct bridge *bridge, enum machine_side to, size_t *moved)
{
	struct bridge_side *side = &bridge->side[to];
	const struct machine *m = &bridge->machine;
	struct slice out;

	while ((out = m->ops->peek(m->self, to)).len > 0) {
		ssize_t n;

		if (side->io.fd < 0 || side->is_shut) { /* nobody is there to read it */
			m->ops->sent(m->self, to, out.len);
			continue;
		}
		if (!(side->io.ready & POLLER_WRITE))
			return 0;
		n = send(side->io.fd, out.p, out.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EPIPE && to == MACHINE_SERVER) { /* it had sent its end */
			side->is_shut = true;
			continue;
		}
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0) {
			side->io.ready &= ~POLLER_WRITE;
			return 0;
		}
		m->ops->sent(m->self, to, (size_t)n);
		*moved += (size_t)n;
		if (to == MACHINE_CLIENT)
			bridge->bytes_in += (uint64_t)n;
	}
	if (side->is_shut || !m->ops->wants_end(m->self, to))
		return 0;
	side->is_shut = true;
	*moved += 1;
	if (side->io.fd >= 0 && shutdown(side->io.fd, SHUT_WR) < 0 && errno != ENOTCONN)
		return -errno;
	return 0;
}

/* False: the flow is gone. */
static bool once(struct bridge *bridge, size_t *moved)
{
	static int (*const steps[])(struct bridge *, enum machine_side, size_t *) = {feed, emit};
	int r;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		for (enum machine_side side = MACHINE_CLIENT; side < MACHINE_SIDES; side++) {
			r = steps[i](bridge, side, moved);
			if (r == 0)
				continue;
			bridge_fail(bridge, side, -r);
			return false;
		}
	r = bridge->machine.ops->error(bridge->machine.self);
	if (r == 0)
		return true;
	if (r == -EACCES && bridge->answer.only_http && !bridge->is_told) {
		bridge_refuse_opaque(bridge); /* what came inside TLS is no HTTP */
		return false;
	}
	bridge->failed = true;
	bridge_reset(
		bridge, r == -EPROTO ? "one side broke the rules of HTTP/2" : event_errno_name(-r));
	return false;
}

static void on_left(void *ctx)
{
	bridge_end(ctx);
}

/* A close while bytes wait to be read is a reset, which would take back what the program has yet to read: so they are
 * read, for a while. */
void bridge_begin_leaving(struct bridge *bridge)
{
	bridge->state = BRIDGE_LEAVING;
	if (!bridge->side[MACHINE_CLIENT].is_shut)
		(void)shutdown(bridge->side[MACHINE_CLIENT].io.fd, SHUT_WR); /* it may be gone */
	relay_done(&bridge->side[MACHINE_CLIENT].relay, &bridge->all->pool);
	bridge->timer = (struct poller_timer){.on_time = on_left, .ctx = bridge};
	poller_timer_set(bridge->gw->poller, &bridge->timer, LEAVE_NS);
	bridge_leave(bridge);
}

void bridge_leave(struct bridge *bridge)
{
	struct bridge_side *client = &bridge->side[MACHINE_CLIENT];
	ssize_t n;

	do {
		n = recv(client->io.fd, bridge->gw->chunk, sizeof(bridge->gw->chunk), 0);
		if (n > 0)
			bridge->thrown += (size_t)n;
	} while (n > 0 && bridge->thrown < LEAVE_BYTES);
	if (n < 0 && errno == EAGAIN)
		return;
	bridge_end(bridge);
}

/* A program that gives up while upstream has yet to shake hands: its hello is not taken, and its end stands behind that. */
static void look_for_end(struct bridge *bridge)
{
	struct bridge_side *client = &bridge->side[MACHINE_CLIENT];

	if (!bridge->client_ended || client->eof || !bridge->mitm ||
		!mitm_waits_for_upstream(bridge->mitm))
		return;
	client->eof = true;
	bridge->machine.ops->end(bridge->machine.self, MACHINE_CLIENT);
}

void bridge_drive(struct bridge *bridge)
{
	struct bridge_side *side = bridge->side;
	size_t total = 0, moved;

	look_for_end(bridge);
	do {
		moved = 0;
		if (!once(bridge, &moved))
			return;
		total += moved;
	} while (moved > 0 && total < TURN_BYTES);
	if (side[MACHINE_CLIENT].is_shut &&
		(side[MACHINE_SERVER].is_shut || side[MACHINE_SERVER].io.fd < 0)) {
		if (side[MACHINE_CLIENT].eof)
			bridge_end(bridge);
		else
			bridge_begin_leaving(bridge);
	} else if (moved > 0) {
		poller_again(bridge->gw->poller, &side[MACHINE_CLIENT].io);
	}
}
