/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/held.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/ask.h"
#include "gateway/bridge.h"
#include "gateway/dns_stream.h"
#include "gateway/gateway_internal.h"
#include "gateway/intake.h"
#include "gateway/limits.h"
#include "gateway/lookup.h"
#include "gateway/refused.h"
#include "proto/gateway_wire.h"
#include "util/clock.h"
#include "util/kmap.h"
#include "util/mem.h"

#define ACCEPT_NS  (15 * CLOCK_NS_PER_S) /* from SYN to accept; the client may be gone */
#define HTTP_PORT  80
#define HTTPS_PORT 443

static void keep_packet(struct held *held, const struct netcatch_record *record)
{
	memcpy(held->packet, record->packet, record->len);
	held->packet_len = record->len;
}

static void send_raw(const struct held *held, const uint8_t *packet, size_t len)
{
	struct sockaddr_storage to;
	bool is_v4 = packet[0] >> 4 == 4;
	uint8_t address[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	socklen_t to_len;

	memcpy(address + (is_v4 ? 12 : 0), packet + (is_v4 ? 16 : 24), is_v4 ? 4 : 16);
	to_len = flow_sockaddr(address, 0, &to);
	/* One that is lost is asked for again by the client's kernel, which repeats its SYN. */
	(void)sendto(is_v4 ? GATEWAY_FD_RAW4 : GATEWAY_FD_RAW6, packet, len, 0,
		(const struct sockaddr *)&to, to_len);
}

static void settle(struct held *held)
{
	uint32_t verdict = NETCATCH_PASS;

	if (!held->gw->by_rules)
		(void)kmap_set(GATEWAY_FD_FLOWS, &held->key,
			&verdict); /* full: held again by its repeat */
	syn_complete(held->packet, held->packet_len);
	send_raw(held, held->packet, held->packet_len);
}

static void reset(struct held *held)
{
	uint8_t answer[SYN_ICMP_MAX];
	size_t len = syn_reset(held->packet, answer);

	send_raw(held, answer, len);
}

static void unreachable(struct held *held, int positive_errno)
{
	uint8_t answer[SYN_ICMP_MAX];
	size_t len = syn_unreachable(held->packet, held->packet_len, positive_errno, answer);

	send_raw(held, answer, len);
}

/* What connect() inside then says. A dial that timed out is not answered: the program's own runs out as well. */
static void answer_client(struct held *held, int positive_errno)
{
	switch (positive_errno) {
	case ETIMEDOUT:
		break;
	case ECONNREFUSED:
	case ECONNRESET:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOBUFS:
		reset(held);
		break;
	case ENETUNREACH:
		unreachable(held, ENETUNREACH);
		break;
	default:
		unreachable(held, EHOSTUNREACH);
		break;
	}
}

static void tell_connect(struct held *held, int positive_errno)
{
	struct event ev = flow_head_event(&held->head, EVENT_NET_CONNECT);

	if (positive_errno) {
		event_set(&ev, result, positive_errno);
		event_set_text(&ev, reason, held->dial.why);
	}
	event_set(&ev, duration_ns, poller_now_ns(held->gw->poller) - held->since_ns);
	channel_event(held->gw->channel, held->head.owner.cgroup, &ev);
}

static void count(struct held *held, bool counts)
{
	if (held->counts == counts)
		return;
	held->gw->n_flows += counts ? 1 : (size_t)-1;
	held->counts = counts;
}

void held_free(struct held *held)
{
	intake_forget(held->gw->intake, held);
	poller_timer_stop(held->gw->poller, &held->timer);
	dial_cancel(&held->dial);
	lookup_cancel(held->lookup);
	ask_cancel(held->ask);
	if (held->state == HELD_SETTLED && !held->gw->by_rules)
		(void)kmap_remove(GATEWAY_FD_FLOWS, &held->key); /* gone: as well */
	count(held, false);
	flow_head_done(&held->head);
	free(held);
}

void held_answer(struct gateway *gw, const struct netcatch_record *record, int positive_errno)
{
	struct held held = {.gw = gw, .key = record->key};

	keep_packet(&held, record);
	answer_client(&held, positive_errno);
}

static void fail(struct held *held, int positive_errno)
{
	answer_client(held, positive_errno);
	intake_remember_failure(held->gw->intake, held, positive_errno);
	tell_connect(held, positive_errno);
	held_free(held);
}

void held_give_up(struct held *held)
{
	fail(held, ETIMEDOUT);
}

/* It stood, and was never used. */
static void end_unused(struct held *held, bool failed, const char *why)
{
	struct event ev = flow_head_event(&held->head, EVENT_NET_FLOW);

	if (held->answer.verdict == POLICY_DENY)
		verdict_tell(held->gw, &held->head, &held->answer, "connect");
	event_set(&ev, bytes_out, 0);
	event_set(&ev, bytes_in, 0);
	event_set(&ev, duration_ns, 0);
	if (failed)
		event_set(&ev, failed, true);
	event_set_text(&ev, error, why);
	channel_event(held->gw->channel, held->head.owner.cgroup, &ev);
	held_free(held);
}

static void on_not_accepted(void *ctx)
{
	end_unused(ctx, false, "the program did not wait for it");
}

void held_lose(struct held *held, const char *why)
{
	end_unused(held, true, why);
}

void held_stop(struct held *held)
{
	if (held->state == HELD_SETTLED) {
		on_not_accepted(held);
		return;
	}
	held->dial.why = "the sandbox ended before it stood";
	tell_connect(held, ECANCELED);
	held_free(held);
}

static void let_in(struct held *held)
{
	intake_unqueue(held->gw->intake, held);
	held->state = HELD_SETTLED;
	held->timer = (struct poller_timer){.on_time = on_not_accepted, .ctx = held};
	poller_timer_set(held->gw->poller, &held->timer, ACCEPT_NS);
	settle(held);
}

static void on_dialled(void *ctx, int r)
{
	struct held *held = ctx;

	memcpy(held->head.dialled, held->address, sizeof(held->head.dialled));
	held->head.has_dialled = !held->head.is_plane;
	if (r < 0) {
		fail(held, -r);
		return;
	}
	tell_connect(held, 0);
	let_in(held);
}

/* Where refusals can be told in HTTP; inside TLS only where that is opened. */
static bool can_answer(const struct held *held)
{
	if (!held->head.host || !names_is_synthetic(held->head.address))
		return false;
	return held->head.port == HTTP_PORT ||
	       (held->head.port == HTTPS_PORT &&
		       policy_tls(held->gw->policy, held->head.host) == SPEC_TLS_INTERCEPT);
}

static void refuse(struct held *held)
{
	struct gateway *gw = held->gw;

	const char *why;

	if (can_answer(held) && limits_check(gw->limits, &why) == 0) {
		count(held, true);
		let_in(held);
		return;
	}
	verdict_tell(gw, &held->head, &held->answer, "connect");
	if (held->state != HELD_ASKED) /* the next one may be asked about again */
		refused_add(gw->refused, held->key.dst, held->key.dport, IPPROTO_TCP);
	fail(held, ECONNREFUSED);
}

/* The address that a synthetic one's name really leads to is judged like any other. */
static void on_found(void *ctx, int r, const uint8_t (*addresses)[16], size_t n)
{
	struct held *held = ctx;

	held->lookup = NULL;
	for (size_t i = 0; i < n; i++) {
		verdict_of(held->gw, held->head.host, addresses[i], held->port, held->head.protocol,
			&held->answer);
		if (held->answer.verdict == POLICY_DENY)
			continue;
		memcpy(held->address, addresses[i], sizeof(held->address));
		held->has_address = true;
		held_dial(held);
		return;
	}
	if (n > 0)
		refuse(held);
	else
		fail(held, r == -ETIMEDOUT ? ETIMEDOUT : EHOSTUNREACH);
}

/* A proxy looks names up anew, and may find another place than the one that was judged: it is asked for a name only
 * where a rule names that. */
static const char *name_for_proxy(const struct held *held)
{
	return held->answer.is_named ? held->head.host : NULL;
}

void held_dial(struct held *held)
{
	struct gateway *gw = held->gw;
	int r;

	if (!intake_may_dial(gw->intake, held))
		return; /* in the queue: called again */
	if (!held->counts) {
		r = limits_check(gw->limits, &held->dial.why);
		if (r < 0) {
			fail(held, -r);
			return;
		}
		count(held, true);
	}
	if (!held->has_address && !held->head.is_plane) {
		held->state = HELD_RESOLVING;
		held->lookup = lookup_start(gw, held->head.host, on_found, held);
		return;
	}
	held->state = HELD_DIALLING;
	if (held->head.is_plane)
		r = dial_start_plane(gw, &held->dial, on_dialled, held);
	else
		r = dial_start(gw, &held->dial, held->address, held->port, name_for_proxy(held),
			on_dialled, held);
	if (r == -EMFILE || r == -ENFILE)
		held->dial.why = limits_no_room(gw->limits);
	if (r < 0)
		fail(held, -r);
}

static void on_answer(void *ctx, bool is_allowed)
{
	struct held *held = ctx;

	held->ask = NULL;
	if (is_allowed) {
		held->answer.verdict = POLICY_ALLOW;
		held->head.was_asked = true;
		held_dial(held);
	} else {
		held->answer.verdict = POLICY_DENY;
		refuse(held);
	}
}

static void decide(struct held *held)
{
	if (held->head.port == DNS_STREAM_PORT) {
		count(held, true);
		let_in(held); /* names are asked for there, of us */
		return;
	}
	switch (held->answer.verdict) {
	case POLICY_ALLOW:
		if (held->answer.shadow)
			verdict_tell(held->gw, &held->head, &held->answer, "connect");
		held_dial(held);
		break;
	case POLICY_ASK:
		held->state = HELD_ASKED;
		held->ask = ask_start(held->gw, &held->head, on_answer, held);
		break;
	case POLICY_DENY:
		refuse(held);
		break;
	}
}

void held_turn_away(struct gateway *gw, const struct netcatch_record *record, const char *why)
{
	struct held held = {.gw = gw,
		.key = record->key,
		.dial = {.why = why},
		.since_ns = poller_now_ns(gw->poller)};
	struct verdict verdict;

	verdict_find(gw, record->key.dst, record->key.dport, "tcp", &verdict);
	flow_head_init(&held.head, "tcp", record->key.dst, record->key.dport, verdict.host,
		&record->owner);
	held.head.flow = gateway_flow_number(gw);
	keep_packet(&held, record);
	answer_client(&held, EMFILE);
	tell_connect(&held, EMFILE);
	flow_head_done(&held.head);
}

void held_start(struct gateway *gw, const struct netcatch_record *record)
{
	struct held *held = new0(struct held);
	struct verdict verdict;

	verdict_find(gw, record->key.dst, record->key.dport, "tcp", &verdict);
	*held = (struct held){.gw = gw,
		.key = record->key,
		.answer = verdict.answer,
		.has_address = verdict.has_address,
		.port = verdict.port,
		.since_ns = poller_now_ns(gw->poller)};
	memcpy(held->address, verdict.address, sizeof(held->address));
	flow_head_init(&held->head, "tcp", record->key.dst, record->key.dport, verdict.host,
		&record->owner);
	held->head.flow = gateway_flow_number(gw);
	held->head.is_plane = names_is_synthetic(record->key.dst) && policy_is_plane(verdict.host);
	keep_packet(held, record);
	intake_remember(gw->intake, held);
	decide(held);
}

void held_repeat(struct held *held, const struct netcatch_record *record)
{
	keep_packet(held, record);
	if (held->state == HELD_WAITING)
		held_dial(held);
	else if (held->state == HELD_SETTLED)
		settle(held);
}

void held_accept(struct held *held, int client_fd)
{
	struct gateway *gw = held->gw;
	struct flow_head head = held->head;
	struct policy_answer answer = held->answer;
	struct poller_io upstream;

	dial_take(&held->dial, &upstream);
	held->head = (struct flow_head){0};
	held_free(held);
	if (head.port == DNS_STREAM_PORT)
		dns_stream_open(gw, &head, client_fd);
	else
		bridge_open(gw, &head, client_fd, &upstream, &answer);
}

void held_check(struct held *held)
{
	struct policy_answer answer;

	if (held->answer.verdict == POLICY_DENY || held->head.port == DNS_STREAM_PORT)
		return;
	if (verdict_still_holds(
		    held->gw, &held->head, held->has_address ? held->address : NULL, &answer) ||
		(held->ask && answer.verdict == POLICY_ASK)) {
		held->answer.only_http = answer.only_http;
		return;
	}
	held->answer = answer;
	held->answer.verdict = POLICY_DENY;
	if (held->state == HELD_SETTLED) {
		end_unused(held, false, VERDICT_CHANGED);
		return;
	}
	verdict_tell(held->gw, &held->head, &held->answer, "connect");
	fail(held, ECONNREFUSED);
}
