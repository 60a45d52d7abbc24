/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/udp_flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "gateway/ask.h"
#include "gateway/datagram.h"
#include "gateway/gateway_internal.h"
#include "gateway/lookup.h"
#include "gateway/owners.h"
#include "gateway/refused.h"
#include "gateway/syn.h"
#include "gateway/traffic.h"
#include "gateway/udp_socket.h"
#include "gateway/verdict.h"
#include "proto/gateway_wire.h"
#include "util/clock.h"
#include "util/kmap.h"
#include "util/map.h"
#include "util/mem.h"

#define FLOWS_MAX 512                    /* the oldest silent one gives way */
#define LONE_NS   (30 * CLOCK_NS_PER_S)  /* nothing came back yet */
#define IDLE_NS   (120 * CLOCK_NS_PER_S) /* it did */
#define TURN      32                     /* datagrams of a socket */
#define QUIC_PORT 443

struct udp_flow {
	struct udp_flows *all;
	struct udp_flow *next, **at; /* the one that was used last comes first */
	struct netcatch_key key;
	struct flow_head head;
	struct policy_answer answer;
	struct poller_io inside, outside; /* fd -1: none yet */
	struct poller_timer timer;
	struct str first; /* datagram, until there is a way */
	bool has_first;
	struct ask *ask;
	bool was_asked_about; /* whatever the answer was */
	struct lookup *lookup;
	bool has_address;
	uint8_t address[16];
	uint16_t port;
	uint64_t bytes_out, bytes_in, n_datagrams;
	int64_t since_ns;
	int error;
};

struct udp_flows {
	struct gateway *gw;
	struct poller_io io4, io6;
	struct map *by_key;
	struct udp_flow *first;
};

static struct slice key_of(const struct netcatch_key *key)
{
	return (struct slice){.p = (const char *)key, .len = sizeof(*key)};
}

static void tell_connect(struct udp_flow *flow, int positive_errno)
{
	struct event ev = flow_head_event(&flow->head, EVENT_NET_CONNECT);

	if (positive_errno)
		event_set(&ev, result, positive_errno);
	event_set(&ev, duration_ns, poller_now_ns(flow->all->gw->poller) - flow->since_ns);
	channel_event(flow->all->gw->channel, flow->head.owner.cgroup, &ev);
}

static void tell_end(struct udp_flow *flow)
{
	struct event ev = flow_head_event(&flow->head, EVENT_NET_UDP);

	event_set(&ev, bytes_out, (event_int)flow->bytes_out);
	event_set(&ev, bytes_in, (event_int)flow->bytes_in);
	event_set(&ev, datagrams, (event_int)flow->n_datagrams);
	event_set(&ev, duration_ns, poller_now_ns(flow->all->gw->poller) - flow->since_ns);
	if (flow->error) {
		event_set(&ev, failed, true);
		event_set_text(&ev, error, event_errno_name(flow->error));
	}
	channel_event(flow->all->gw->channel, flow->head.owner.cgroup, &ev);
}

static void close_io(struct gateway *gw, struct poller_io *io)
{
	int fd = io->fd;

	if (fd < 0)
		return;
	poller_forget(gw->poller, io);
	close(fd);
}

static void flow_free(struct udp_flow *flow)
{
	struct gateway *gw = flow->all->gw;

	if (flow->n_datagrams > 0)
		tell_end(flow);
	ask_cancel(flow->ask);
	lookup_cancel(flow->lookup);
	close_io(gw, &flow->inside);
	close_io(gw, &flow->outside);
	poller_timer_stop(gw->poller, &flow->timer);
	map_remove(flow->all->by_key, key_of(&flow->key));
	*flow->at = flow->next;
	if (flow->next)
		flow->next->at = flow->at;
	flow_head_done(&flow->head);
	str_done(&flow->first);
	free(flow);
}

static void refuse_datagram(const struct netcatch_key *key)
{
	uint8_t answer[SYN_ICMP_MAX];
	struct sockaddr_storage to;
	size_t len = syn_port_unreachable(key->src, key->sport, key->dst, key->dport, answer);
	socklen_t to_len = flow_sockaddr(key->src, 0, &to);

	(void)sendto(to.ss_family == AF_INET ? GATEWAY_FD_RAW4 : GATEWAY_FD_RAW6, answer, len, 0,
		(const struct sockaddr *)&to, to_len); /* as the datagram, it may be lost */
}

static void fail(struct udp_flow *flow, int positive_errno)
{
	refuse_datagram(&flow->key);
	if (flow->n_datagrams == 0)
		tell_connect(flow, positive_errno);
	flow->error = positive_errno;
	flow_free(flow);
}

static void refuse(struct udp_flow *flow)
{
	verdict_tell(flow->all->gw, &flow->head, &flow->answer, "connect");
	if (!flow->was_asked_about) /* the next one may be asked about again */
		refused_add(flow->all->gw->refused, flow->key.dst, flow->key.dport, IPPROTO_UDP);
	fail(flow, ECONNREFUSED);
}

static void touch(struct udp_flow *flow)
{
	struct udp_flows *all = flow->all;

	poller_timer_set(all->gw->poller, &flow->timer, flow->bytes_in > 0 ? IDLE_NS : LONE_NS);
	*flow->at = flow->next;
	if (flow->next)
		flow->next->at = flow->at;
	flow->next = all->first;
	flow->at = &all->first;
	if (flow->next)
		flow->next->at = &flow->next;
	all->first = flow;
}

/* False: the flow has failed and is gone. A full socket loses datagrams, as any network does. */
static bool send_out(struct udp_flow *flow, const char *p, size_t len)
{
	flow->n_datagrams++;
	flow->bytes_out += len;
	if (send(flow->outside.fd, p, len, MSG_NOSIGNAL) >= 0 || errno == EAGAIN ||
		errno == ENOBUFS || errno == EMSGSIZE)
		return true;
	fail(flow, errno);
	return false;
}

static void on_inside(void *ctx)
{
	struct udp_flow *flow = ctx;
	char *chunk = flow->all->gw->chunk;

	for (int i = 0; i < TURN; i++) {
		ssize_t n = recv(flow->inside.fd, chunk, GATEWAY_CHUNK, 0);

		if (n < 0)
			break; /* nothing, or that the program has closed its port */
		if (!send_out(flow, chunk, (size_t)n))
			return;
		touch(flow);
	}
}

/* As by a socket that had the address of whom it was sent to. */
static void send_raw(const struct netcatch_key *key, char *p, size_t len)
{
	uint8_t head[SYN_DATAGRAM_HEAD];
	struct iovec parts[] = {{.iov_base = head, .iov_len = syn_datagram(key, p, len, head)},
		{.iov_base = p, .iov_len = len}};
	struct sockaddr_storage to;
	struct msghdr m = {.msg_name = &to,
		.msg_namelen = flow_sockaddr(key->src, 0, &to),
		.msg_iov = parts,
		.msg_iovlen = 2};

	(void)sendmsg(to.ss_family == AF_INET ? GATEWAY_FD_RAW4 : GATEWAY_FD_RAW6, &m, 0);
}

/* Like any datagram it may be lost. */
static void send_in(const struct udp_flow *flow, char *p, size_t len)
{
	if (flow->inside.fd >= 0)
		(void)send(flow->inside.fd, p, len, MSG_NOSIGNAL);
	else
		send_raw(&flow->key, p, len);
}

static void on_outside(void *ctx)
{
	struct udp_flow *flow = ctx;
	char *chunk = flow->all->gw->chunk;

	for (int i = 0; i < TURN; i++) {
		ssize_t n = recv(flow->outside.fd, chunk, GATEWAY_CHUNK, 0);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			fail(flow, errno);
			return;
		}
		flow->n_datagrams++;
		flow->bytes_in += (uint64_t)n;
		send_in(flow, chunk, (size_t)n);
		touch(flow);
	}
}

static void on_idle(void *ctx)
{
	flow_free(ctx);
}

static int add_io(struct udp_flow *flow, struct poller_io *io, int fd, void (*on_ready)(void *))
{
	int r = fd < 0 ? fd : poller_add_level(flow->all->gw->poller, io, fd, on_ready, flow);

	if (r < 0) {
		if (fd >= 0)
			close(fd);
		io->fd = -1;
	}
	return r;
}

/* Without a socket of its own all that comes in arrives at the common ones. Rules lead nothing to one; and where a program
 * inside has the port at all addresses, none can be had. */
static int open_inside(struct udp_flow *flow)
{
	int fd = flow->all->gw->by_rules ? -EADDRINUSE
	                                 : udp_socket_inside(flow->all->gw, &flow->key);

	return fd == -EADDRINUSE ? 0 : add_io(flow, &flow->inside, fd, on_inside);
}

static void open_way(struct udp_flow *flow)
{
	int r;

	memcpy(flow->head.dialled, flow->address, sizeof(flow->head.dialled));
	flow->head.has_dialled = true;
	r = add_io(flow, &flow->outside, udp_socket_outside(flow->address, flow->port), on_outside);

	if (r == 0)
		r = open_inside(flow);
	if (r < 0) {
		fail(flow, -r);
		return;
	}
	tell_connect(flow, 0);
	touch(flow);
	if (send_out(flow, flow->first.p, flow->first.len)) {
		str_done(&flow->first);
		flow->has_first = false;
	}
}

/* The first of them that may be reached, as for connections. */
static void on_found(void *ctx, int r, const uint8_t (*addresses)[16], size_t n)
{
	struct udp_flow *flow = ctx;

	flow->lookup = NULL;
	for (size_t i = 0; i < n; i++) {
		verdict_of(flow->all->gw, flow->head.host, addresses[i], flow->port,
			flow->head.protocol, &flow->answer);
		if (flow->answer.verdict == POLICY_DENY)
			continue;
		memcpy(flow->address, addresses[i], sizeof(flow->address));
		flow->has_address = true;
		open_way(flow);
		return;
	}
	if (n > 0)
		refuse(flow);
	else
		fail(flow, EHOSTUNREACH);
}

static void find_way(struct udp_flow *flow)
{
	if (flow->has_address)
		open_way(flow);
	else
		flow->lookup = lookup_start(flow->all->gw, flow->head.host, on_found, flow);
}

static void on_answer(void *ctx, bool is_allowed)
{
	struct udp_flow *flow = ctx;

	flow->ask = NULL;
	flow->was_asked_about = true;
	flow->head.was_asked = is_allowed;
	flow->answer.verdict = is_allowed ? POLICY_ALLOW : POLICY_DENY;
	if (is_allowed)
		find_way(flow);
	else
		refuse(flow);
}

/* What no rule is about. */
static void object(struct policy_answer *answer, const char *rule, const char *reason)
{
	answer->verdict = POLICY_DENY;
	answer->shadow = false;
	snprintf(answer->rule, sizeof(answer->rule), "%s", rule);
	snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
}

static void decide(struct udp_flow *flow)
{
	struct policy_answer *answer = &flow->answer;

	if (answer->verdict != POLICY_DENY && flow->key.dport == QUIC_PORT)
		object(answer, "default: no QUIC",
			"QUIC (UDP port 443) is not passed on, since its requests could not be "
			"recorded; use HTTPS over TCP");
	else if (answer->verdict != POLICY_DENY && flow->all->gw->proxy.host.len > 0)
		object(answer, "default: upstream proxy",
			"this sandbox's network goes through an HTTP proxy, which passes no UDP");
	switch (answer->verdict) {
	case POLICY_ALLOW:
		if (answer->shadow)
			verdict_tell(flow->all->gw, &flow->head, answer, "connect");
		find_way(flow);
		break;
	case POLICY_ASK:
		flow->ask = ask_start(flow->all->gw, &flow->head, on_answer, flow);
		break;
	case POLICY_DENY:
		refuse(flow);
		break;
	}
}

static void make_room(struct udp_flows *all)
{
	struct udp_flow *last = all->first;

	if (map_len(all->by_key) < FLOWS_MAX)
		return;
	while (last->next)
		last = last->next;
	flow_free(last);
}

static void begin(struct udp_flows *all, const struct datagram *datagram)
{
	struct udp_flow *flow = new0(struct udp_flow);
	struct netcatch_owner owner;
	struct verdict verdict;

	make_room(all);
	verdict_find(all->gw, datagram->key.dst, datagram->key.dport, "udp", &verdict);
	owners_find(all->gw->owners, &datagram->key, &owner);
	*flow = (struct udp_flow){.all = all,
		.key = datagram->key,
		.answer = verdict.answer,
		.inside = {.fd = -1},
		.outside = {.fd = -1},
		.has_address = verdict.has_address,
		.port = verdict.port,
		.has_first = true,
		.since_ns = poller_now_ns(all->gw->poller)};
	memcpy(flow->address, verdict.address, sizeof(flow->address));
	flow_head_init(
		&flow->head, "udp", datagram->key.dst, datagram->key.dport, verdict.host, &owner);
	flow->head.flow = gateway_flow_number(all->gw);
	flow->timer = (struct poller_timer){.on_time = on_idle, .ctx = flow};
	str_add(&flow->first, datagram->p, datagram->len);
	flow->next = all->first;
	flow->at = &all->first;
	if (flow->next)
		flow->next->at = &flow->next;
	all->first = flow;
	*map_slot(all->by_key, key_of(&flow->key)) = flow;
	decide(flow);
}

/* Of a flow that is known: sent before its socket inside stood, or while it waits for its way. */
static void follow(struct udp_flow *flow, const struct datagram *datagram)
{
	if (flow->has_first)
		return; /* one is kept, as by a network that is not up yet */
	if (send_out(flow, datagram->p, datagram->len))
		touch(flow);
}

static bool read_one(struct udp_flows *all, int fd)
{
	struct datagram datagram = {.p = all->gw->chunk, .max = sizeof(all->gw->chunk)};
	struct udp_flow *flow;

	if (datagram_read(fd, &datagram) <= 0)
		return false;
	flow = map_find(all->by_key, key_of(&datagram.key));
	if (flow)
		follow(flow, &datagram);
	else
		begin(all, &datagram);
	return true;
}

static void on_udp4(void *ctx)
{
	for (int i = 0; i < TURN && read_one(ctx, GATEWAY_FD_UDP4); i++)
		;
}

static void on_udp6(void *ctx)
{
	for (int i = 0; i < TURN && read_one(ctx, GATEWAY_FD_UDP6); i++)
		;
}

void udp_flows_check(struct udp_flows *all)
{
	struct policy_answer answer;
	struct udp_flow *next;

	for (struct udp_flow *flow = all->first; flow; flow = next) {
		next = flow->next;
		if (verdict_still_holds(all->gw, &flow->head,
			    flow->has_address ? flow->address : NULL, &answer) ||
			(flow->ask && answer.verdict == POLICY_ASK))
			continue;
		flow->answer = answer;
		refuse(flow);
	}
}

void udp_flows_count(const struct udp_flows *all, struct traffic *traffic)
{
	for (const struct udp_flow *flow = all->first; flow; flow = flow->next) {
		traffic->bytes_out += flow->bytes_out;
		traffic->bytes_in += flow->bytes_in;
	}
}

int udp_flows_open(struct gateway *gw, struct udp_flows **ret_flows, struct err *err)
{
	struct udp_flows *all = new0(struct udp_flows);
	int r;

	all->gw = gw;
	all->by_key = map_new();
	all->io4.fd = all->io6.fd = -1;
	r = poller_add_level(gw->poller, &all->io4, GATEWAY_FD_UDP4, on_udp4, all);
	if (r == 0)
		r = poller_add_level(gw->poller, &all->io6, GATEWAY_FD_UDP6, on_udp6, all);
	if (r == -EBADF)
		r = 0; /* a host without IPv6 */
	if (r < 0) {
		udp_flows_free(all);
		return err_set(err, r, "watch the sockets for datagrams: %m");
	}
	*ret_flows = all;
	return 0;
}

void udp_flows_free(struct udp_flows *all)
{
	if (!all)
		return;
	while (all->first)
		flow_free(all->first);
	poller_remove(all->gw->poller, &all->io4);
	poller_remove(all->gw->poller, &all->io6);
	map_free(all->by_key);
	free(all);
}
