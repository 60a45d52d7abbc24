/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/bridge_internal.h"
#include "gateway/gateway_internal.h"
#include "gateway/mitm.h"
#include "gateway/traffic.h"
#include "gateway/verdict.h"
#include "util/mem.h"

struct bridges *bridge_all_new(struct gateway *gw)
{
	struct bridges *all = new0(struct bridges);

	all->gw = gw;
	all->pool = (struct relay_pool){.chunk = gw->chunk, .chunk_len = sizeof(gw->chunk)};
	return all;
}

/* What the machine for TLS has to say. */
static void ask_mitm(struct bridge *bridge)
{
	const char *error = mitm_error(bridge->mitm);

	bridge->failed |= mitm_has_failed(bridge->mitm);
	if (mitm_is_unread(bridge->mitm))
		bridge->tls = "unreadable";
	if (*error && bridge->error.len == 0)
		str_puts(&bridge->error, error);
}

static struct traffic passed(const struct bridge *bridge)
{
	const struct bridge_side *side = bridge->side;

	return (struct traffic){.bytes_out = side[MACHINE_CLIENT].relay.bytes + bridge->bytes_out,
		.bytes_in = side[MACHINE_SERVER].relay.bytes + bridge->bytes_in};
}

static void tell_end(struct bridge *bridge)
{
	struct event ev = flow_head_event(&bridge->head, EVENT_NET_FLOW);

	event_set(&ev, bytes_out, (event_int)passed(bridge).bytes_out);
	event_set(&ev, bytes_in, (event_int)passed(bridge).bytes_in);
	event_set(&ev, duration_ns, poller_now_ns(bridge->gw->poller) - bridge->since_ns);
	event_set_text(&ev, tls, bridge->tls);
	if (bridge->sni.len)
		event_set(&ev, sni, str_slice(&bridge->sni));
	if (bridge->failed)
		event_set(&ev, failed, true);
	if (bridge->error.len)
		event_set(&ev, error, str_slice(&bridge->error));
	channel_event(bridge->gw->channel, bridge->head.owner.cgroup, &ev);
}

static void close_side(struct bridge *bridge, struct bridge_side *side, bool reset)
{
	int fd = side->io.fd;

	relay_done(&side->relay, &bridge->all->pool);
	if (fd < 0)
		return;
	poller_forget(bridge->gw->poller, &side->io);
	flow_close(fd, reset);
}

static void done(struct bridge *bridge, bool reset)
{
	if (bridge->mitm)
		ask_mitm(bridge);
	if (bridge->machine.ops)
		bridge->machine.ops->free(bridge->machine.self); /* which may tell of an exchange */
	/* Also where the program left before it could be told why. */
	if (bridge->answer.verdict == POLICY_DENY && !bridge->is_told)
		verdict_tell(bridge->gw, &bridge->head, &bridge->answer, "connect");
	tell_end(bridge);
	for (int i = 0; i < MACHINE_SIDES; i++)
		close_side(bridge, &bridge->side[i], reset);
	poller_timer_stop(bridge->gw->poller, &bridge->timer);
	*bridge->at = bridge->next;
	if (bridge->next)
		bridge->next->at = bridge->at;
	bridge->gw->n_flows--;
	flow_head_done(&bridge->head);
	str_done(&bridge->sni);
	str_done(&bridge->error);
	free(bridge);
}

void bridge_end(struct bridge *bridge)
{
	done(bridge, false);
}

void bridge_reset(struct bridge *bridge, const char *why)
{
	if (why && bridge->error.len == 0)
		str_puts(&bridge->error, why);
	done(bridge, true);
}

/* A side that has failed, seen while nothing is read from it or written to it. What it sent before comes first: its
 * failure is found again behind that. Upstream that had sent its end (EPIPE), or has ours, did not fail, but takes nothing more: the
 * machine knows whether something was still to come. */
static int failure(struct bridge_side *side, bool is_upstream)
{
	int error = 0;
	socklen_t len = sizeof(error);
	ssize_t waiting;
	char byte;

	if (!(side->io.ready & POLLER_ERROR) || side->io.fd < 0)
		return 0;
	waiting = recv(side->io.fd, &byte, 1, MSG_PEEK);
	if (waiting > 0) {
		side->io.ready |= POLLER_READ;
		return 0;
	}
	side->io.ready &= ~POLLER_ERROR;
	if (waiting < 0 && errno != EAGAIN)
		error = errno;
	else if (getsockopt(side->io.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!is_upstream || (error != EPIPE && !side->is_shut))
		return error;
	side->io.ready |= POLLER_READ | POLLER_WRITE;
	return 0;
}

/* The program may leave as it likes, and says so by its end before; that upstream does is a failure. */
void bridge_fail(struct bridge *bridge, enum machine_side side, int positive_errno)
{
	if (bridge->mitm && side == MACHINE_CLIENT && !bridge->side[side].eof) {
		bridge->side[side].eof = true;
		mitm_machine.end(bridge->mitm, side); /* it knows what the program left in */
	}
	if (bridge->mitm)
		ask_mitm(bridge);
	if (side == MACHINE_SERVER) {
		bridge->failed = true;
		if (bridge->error.len == 0)
			str_printf(
				&bridge->error, "upstream: %s", event_errno_name(positive_errno));
	} else if (!bridge->client_ended && bridge->error.len == 0) {
		str_printf(
			&bridge->error, "the program left: %s", event_errno_name(positive_errno));
	}
	bridge_reset(bridge, NULL);
}

static bool has_failed(struct bridge *bridge)
{
	for (enum machine_side side = MACHINE_CLIENT; side < MACHINE_SIDES; side++) {
		int error = failure(&bridge->side[side], side == MACHINE_SERVER);

		if (!error)
			continue;
		bridge_fail(bridge, side, error);
		return true;
	}
	bridge->client_ended |= (bridge->side[MACHINE_CLIENT].io.ready & POLLER_END) != 0;
	return false;
}

static bool is_ready(const struct bridge *bridge, enum machine_side from)
{
	return bridge->side[from].io.ready & POLLER_READ &&
	       bridge->side[machine_other(from)].io.ready & POLLER_WRITE;
}

/* One direction. A negative errno; 1: it has more for its next turn. */
static int relay_from(struct bridge *bridge, enum machine_side from)
{
	struct bridge_side *source = &bridge->side[from];
	struct bridge_side *sink = &bridge->side[machine_other(from)];
	int r;

	if (!is_ready(bridge, from))
		return 0;
	r = relay_pump(&source->relay, &bridge->all->pool, source->io.fd, sink->io.fd);
	if (r == RELAY_WAIT_SOURCE)
		source->io.ready &= ~POLLER_READ;
	else if (r == RELAY_WAIT_SINK)
		sink->io.ready &= ~POLLER_WRITE;
	return r < 0 ? r : r == RELAY_AGAIN;
}

static void relay(struct bridge *bridge)
{
	struct bridge_side *side = bridge->side;
	int up = relay_from(bridge, MACHINE_CLIENT), down;

	if (up < 0) {
		bridge_fail(bridge, side[MACHINE_CLIENT].relay.sink_failed, -up);
		return;
	}
	down = relay_from(bridge, MACHINE_SERVER);
	if (down < 0) {
		bridge_fail(bridge, !side[MACHINE_SERVER].relay.sink_failed, -down);
		return;
	}
	if (side[MACHINE_CLIENT].relay.is_shut && side[MACHINE_SERVER].relay.is_shut)
		bridge_end(bridge);
	else if (up || down)
		poller_again(bridge->gw->poller, &side[MACHINE_CLIENT].io);
}

void bridge_close_server(struct bridge *bridge)
{
	close_side(bridge, &bridge->side[MACHINE_SERVER], true);
}

void bridge_go_on(struct bridge *bridge)
{
	if (has_failed(bridge))
		return;
	if (bridge->state == BRIDGE_LOOKING && !bridge_look(bridge))
		return;
	if (bridge->state == BRIDGE_RELAYING)
		relay(bridge);
	else if (bridge->state == BRIDGE_MACHINE)
		bridge_drive(bridge);
	else if (bridge->state == BRIDGE_LEAVING)
		bridge_leave(bridge);
}

static void on_ready(void *ctx)
{
	bridge_go_on(ctx);
}

/* Both have TCP_NODELAY: the program's by its listener, upstream's from its dial. */
static int add_client(struct bridge *bridge, int fd)
{
	struct poller_io *io = &bridge->side[MACHINE_CLIENT].io;
	int r = poller_add(bridge->gw->poller, io, fd, on_ready, bridge);

	if (r < 0)
		close(fd);
	return r;
}

void bridge_open(struct gateway *gw, struct flow_head *head, int client_fd,
	struct poller_io *upstream, const struct policy_answer *answer)
{
	struct bridges *all = gw->bridges;
	struct bridge *bridge = new0(struct bridge);

	*bridge = (struct bridge){.gw = gw, .all = all, .head = *head, .answer = *answer};
	*head = (struct flow_head){0};
	bridge->since_ns = poller_now_ns(gw->poller);
	bridge->next = all->first;
	bridge->at = &all->first;
	if (bridge->next)
		bridge->next->at = &bridge->next;
	all->first = bridge;
	gw->n_flows++;
	poller_move(gw->poller, upstream, &bridge->side[MACHINE_SERVER].io, on_ready, bridge);
	if (add_client(bridge, client_fd) < 0) {
		bridge->failed = true;
		bridge_reset(bridge, "the gateway has no room for it");
	}
}

static void refuse_now(struct bridge *bridge, const struct policy_answer *answer)
{
	bridge->answer = *answer;
	bridge->answer.verdict = POLICY_DENY;
	bridge->failed = true;
	bridge_reset(bridge, VERDICT_CHANGED);
}

/* By the rules in force now: the place, and what is under way. */
static void check(struct bridge *bridge)
{
	const struct machine *m = &bridge->machine;
	const struct flow_head *head = &bridge->head;
	struct policy_answer answer;

	if (bridge->state == BRIDGE_LEAVING)
		return;
	if (bridge->side[MACHINE_SERVER].io.fd < 0) {
		bridge_end(bridge); /* refused before: whoever tries again is judged anew */
		return;
	}
	if (!verdict_still_holds(
		    bridge->gw, head, head->has_dialled ? head->dialled : NULL, &answer)) {
		refuse_now(bridge, &answer);
		return;
	}
	bridge->answer.only_http = answer.only_http;
	if (bridge->state == BRIDGE_RELAYING && answer.only_http) {
		bridge_refuse_opaque(bridge);
		return;
	}
	if (bridge->state != BRIDGE_MACHINE)
		return;
	poller_again(bridge->gw->poller,
		&bridge->side[MACHINE_CLIENT].io); /* it may have words to say */
	if (m->ops->check(m->self, answer.only_http) == 0)
		return;
	if (bridge->is_told)
		refuse_now(bridge, &answer);
	else
		bridge_refuse_opaque(bridge);
}

void bridge_all_check(struct bridges *bridges)
{
	struct bridge *next;

	for (struct bridge *bridge = bridges->first; bridge; bridge = next) {
		next = bridge->next;
		check(bridge);
	}
}

void bridge_all_count(const struct bridges *bridges, struct traffic *traffic)
{
	for (const struct bridge *bridge = bridges->first; bridge; bridge = bridge->next) {
		traffic->bytes_out += passed(bridge).bytes_out;
		traffic->bytes_in += passed(bridge).bytes_in;
	}
}

void bridge_all_free(struct bridges *bridges)
{
	if (!bridges)
		return;
	while (bridges->first)
		bridge_reset(bridges->first, "the gateway stops");
	free(bridges);
}
