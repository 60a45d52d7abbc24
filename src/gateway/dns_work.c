/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dns_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/dns_burst.h"
#include "gateway/gateway_internal.h"
#include "gateway/refused.h"
#include "gateway/resolver.h"
#include "gateway/verdict.h"
#include "proto/dns.h"
#include "util/mem.h"

#define SYNTHETIC_TTL_S 30
#define ANSWERS_MAX     64 /* in the event */
#define DISCARD_PORT    9
#define SERVICE_MAX     15 /* letters of a service's name */

struct dns_work {
	struct gateway *gw;
	struct dns_origin origin;
	struct dns_query query;
	struct policy_answer verdict;
	struct resolver_ask *ask;
	bool *is_over;   /* while dns_work_start() runs: to tell it */
	bool is_counted; /* among the gateway's questions */
};

static const uint16_t passed_types[] = {DNS_A, DNS_AAAA, DNS_CNAME, DNS_MX, DNS_TXT, DNS_SRV,
	DNS_NS, DNS_SOA, DNS_PTR, DNS_HTTPS, DNS_SVCB, 257 /* CAA */};

/* A service is announced below the host it belongs to (RFC 2782, as apt asks first): who may reach the host may ask. */
static const char *asked_host(const struct dns_query *query)
{
	static const char *const transports[] = {"._tcp.", "._udp."};
	size_t len = strspn(query->host + 1, "abcdefghijklmnopqrstuvwxyz0123456789-");
	const char *behind = query->host + 1 + len;

	if (query->type != DNS_SRV || *query->host != '_' || len == 0 || len > SERVICE_MAX)
		return query->host;
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (!strncmp(behind, transports[i], strlen(transports[i])))
			return behind + strlen(transports[i]);
	return query->host;
}

static bool is_passed(const struct dns_query *query)
{
	if (query->class != DNS_CLASS_IN)
		return false;
	for (size_t i = 0; i < sizeof(passed_types) / sizeof(passed_types[0]); i++)
		if (query->type == passed_types[i])
			return true;
	return false;
}

void dns_work_cancel(struct dns_work *work)
{
	if (!work)
		return;
	resolver_cancel(work->ask);
	if (work->is_over)
		*work->is_over = true;
	if (work->is_counted)
		gateway_count_question(work->gw, true);
	free(work);
}

static struct event begin_event(const struct dns_work *work, char server[FLOW_ADDRESS_SIZE])
{
	struct event ev = {.kind = EVENT_NET_DNS,
		.pid = work->origin.owner.pid,
		.task = work->origin.owner.task};

	flow_address_text(work->origin.server, server);
	event_set_text(&ev, name, work->query.host);
	event_set_text(&ev, type, dns_type_name(work->query.type));
	event_set_text(&ev, server, server);
	event_set_text(&ev, protocol, work->origin.protocol);
	return ev;
}

static void send_event(const struct dns_work *work, struct event *ev)
{
	channel_event(work->gw->channel, work->origin.owner.cgroup, ev);
}

/* Replies with what is in out, tells, and is over. */
static void finish(struct dns_work *work, struct str *out, struct event *ev)
{
	struct dns_origin origin = work->origin;

	send_event(work, ev);
	dns_work_cancel(work);
	origin.reply(origin.ctx, str_slice(out));
}

static void reply_empty(
	struct dns_work *work, enum dns_rcode rcode, const char *error, const char *reason)
{
	scoped_str struct str out = {0};
	char server[FLOW_ADDRESS_SIZE];
	struct event ev = begin_event(work, server);

	dns_reply_empty(&out, &work->query, rcode);
	event_set_text(&ev, error, error ? error : rcode ? dns_rcode_name(rcode) : NULL);
	event_set_text(&ev, reason, reason);
	finish(work, &out, &ev);
}

/* An address that stands for the name. There is none of version 6: one is enough. */
static void reply_synthetic(struct dns_work *work, struct event *ev)
{
	scoped_str struct str out = {0};
	char text[FLOW_ADDRESS_SIZE];
	struct slice answer = {.p = text};
	uint8_t address[16];

	if (work->query.type == DNS_A) {
		names_synthetic(work->gw->names, work->query.host, false, address);
		dns_reply_address(&out, &work->query, address, SYNTHETIC_TTL_S);
		flow_address_text(address, text);
		answer = slice_of(text);
		event_set(ev, answers, ((struct event_list){.items = &answer, .n = 1}));
	} else if (work->query.type == DNS_AAAA || !event_has(ev, refused)) {
		dns_reply_empty(&out, &work->query, DNS_NOERROR);
	} else {
		dns_reply_empty(&out, &work->query, DNS_REFUSED);
		event_set_text(ev, error, dns_rcode_name(DNS_REFUSED));
	}
	finish(work, &out, ev);
}

/* A refused name is told once a connection: not again for the same name's version 6 addresses. */
static void tell_refused(struct dns_work *work)
{
	struct event ev = {.kind = EVENT_NET_REFUSED,
		.pid = work->origin.owner.pid,
		.task = work->origin.owner.task};

	if (work->query.type == DNS_AAAA)
		return;
	event_set_text(&ev, host, asked_host(&work->query));
	event_set_text(&ev, protocol, work->origin.protocol);
	event_set_text(&ev, rule, work->verdict.rule);
	event_set_text(&ev, reason, work->verdict.reason);
	event_set_text(&ev, stage, "dns");
	if (work->verdict.shadow)
		event_set(&ev, shadow, true);
	send_event(work, &ev);
}

static void refuse(struct dns_work *work, const char *rule, const char *reason, bool is_synthetic)
{
	char server[FLOW_ADDRESS_SIZE];
	struct event ev = begin_event(work, server);

	if (rule) {
		snprintf(work->verdict.rule, sizeof(work->verdict.rule), "%s", rule);
		snprintf(work->verdict.reason, sizeof(work->verdict.reason), "%s", reason);
	}
	work->verdict.shadow = false;
	tell_refused(work);
	event_set(&ev, refused, true);
	event_set_text(&ev, rule, work->verdict.rule);
	event_set_text(&ev, reason, work->verdict.reason);
	if (is_synthetic) {
		reply_synthetic(work, &ev);
	} else {
		scoped_str struct str out = {0};

		dns_reply_empty(&out, &work->query, DNS_REFUSED);
		event_set_text(&ev, error, dns_rcode_name(DNS_REFUSED));
		finish(work, &out, &ev);
	}
}

/* Whether this host knows a way: a datagram socket says so without sending anything. */
static bool is_routed(const uint8_t address[16])
{
	struct sockaddr_storage to;
	socklen_t len = flow_sockaddr(address, DISCARD_PORT, &to);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && connect(fd, (const struct sockaddr *)&to, len) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

/* False: all of the addresses lead nowhere from here. */
static bool is_useful(const struct dns_work *work, const struct dns_answer *answer)
{
	bool any = false;
	uint8_t address[16];

	if (work->query.type != DNS_AAAA)
		return true;
	for (size_t i = 0; i < answer->n_records; i++) {
		if (!dns_record_address(answer, &answer->records[i], address))
			continue;
		if (is_routed(address))
			return true;
		any = true;
	}
	return !any;
}

static void learn(struct dns_work *work, const struct dns_answer *answer)
{
	struct gateway *gw = work->gw;
	uint8_t address[16];

	for (size_t i = 0; i < answer->n_records; i++) {
		if (!dns_record_address(answer, &answer->records[i], address))
			continue;
		names_learn(gw->names, work->query.host, address, answer->records[i].ttl,
			poller_now_ns(gw->poller));
		refused_forget(gw->refused, address);
	}
}

/* The records in words, into text; the list points there. */
static size_t list_answers(const struct dns_answer *answer, struct str *text, struct slice *items)
{
	size_t ends[ANSWERS_MAX], n = 0;

	for (size_t i = 0; i < answer->n_records && n < ANSWERS_MAX; i++) {
		if (answer->records[i].is_authority)
			continue;
		dns_record_text(answer, &answer->records[i], text);
		ends[n++] = text->len;
	}
	for (size_t i = 0; i < n; i++) {
		size_t from = i ? ends[i - 1] : 0;

		items[i] = (struct slice){.p = text->p + from, .len = ends[i] - from};
	}
	return n;
}

static void pass_answer(struct dns_work *work, const struct dns_answer *answer)
{
	scoped_str struct str out = {0}, text = {0};
	struct slice items[ANSWERS_MAX];
	char server[FLOW_ADDRESS_SIZE];
	struct event ev = begin_event(work, server);
	size_t max = work->origin.is_stream ? DNS_MESSAGE_MAX : work->query.udp_size;
	size_t n = list_answers(answer, &text, items);

	event_set(&ev, answers, ((struct event_list){.items = items, .n = n}));
	if (answer->rcode != DNS_NOERROR)
		event_set_text(&ev, error, dns_rcode_name(answer->rcode));
	if (is_useful(work, answer)) {
		learn(work, answer);
		dns_reply_answer(&out, &work->query, answer, DNS_STRIP_ECH, max);
	} else {
		dns_reply_empty(&out, &work->query, DNS_NOERROR);
		event_set_text(&ev, reason, "this host has no way to these addresses");
	}
	finish(work, &out, &ev);
}

/* The program is told that its server failed. Ours are named in the record: that is where to look. */
static void reply_failure(struct dns_work *work, int r)
{
	const struct spec_words *resolvers = &work->gw->config.resolvers;
	scoped_str struct str reason = {0};

	str_puts(&reason, "no DNS server answers:");
	for (size_t i = 0; i < resolvers->n; i++)
		str_printf(&reason, "%s %s", i ? "," : "", resolvers->items[i]);
	reply_empty(work, DNS_SERVFAIL, r == -ETIMEDOUT ? "timeout" : event_errno_name(-r),
		resolvers->n ? reason.p : "this host names no DNS server");
}

static void on_answer(void *ctx, int r, const struct dns_answer *answer)
{
	struct dns_work *work = ctx;

	work->ask = NULL;
	if (r < 0)
		reply_failure(work, r);
	else
		pass_answer(work, answer);
}

static void ask_outside(struct dns_work *work)
{
	struct gateway *gw = work->gw;

	if (work->verdict.shadow)
		tell_refused(work);
	if (policy_is_mapped(gw->policy, asked_host(&work->query))) {
		char server[FLOW_ADDRESS_SIZE];
		struct event ev = begin_event(work, server);

		reply_synthetic(work, &ev);
		return;
	}
	if (!dns_burst_allows(gw->bursts, work->query.host, poller_now_ns(gw->poller))) {
		refuse(work, "burst of names",
			"So many names that look like data were asked for below one domain that "
			"further ones are refused for a minute.",
			false);
		return;
	}
	work->ask = resolver_ask(gw->resolver, &work->query, on_answer, work);
}

static void decide(struct dns_work *work)
{
	struct policy_query query = {.host = asked_host(&work->query), .protocol = "udp"};
	char server[FLOW_ADDRESS_SIZE];
	struct event ev;

	policy_check(work->gw->policy, &query, &work->verdict);
	switch (work->verdict.verdict) {
	case POLICY_ALLOW:
		if (is_passed(&work->query))
			ask_outside(work);
		else
			refuse(work, "type of record",
				"Records of this type are not passed on by this sandbox's gateway.",
				false);
		break;
	case POLICY_ASK:
		ev = begin_event(work, server);
		reply_synthetic(work, &ev);
		break;
	case POLICY_DENY:
		refuse(work, NULL, NULL, is_passed(&work->query));
		break;
	}
}

struct dns_work *dns_work_start(
	struct gateway *gw, struct slice message, const struct dns_origin *origin)
{
	struct dns_work *work = new0(struct dns_work);
	bool is_over = false;

	*work = (struct dns_work){.gw = gw, .origin = *origin, .is_over = &is_over};
	if (dns_query_read(message, &work->query) < 0) {
		free(work);
		origin->reply(origin->ctx, (struct slice){0});
		return NULL;
	}
	if (work->query.fault != DNS_NOERROR)
		reply_empty(work, work->query.fault, NULL, NULL);
	else if (!work->query.is_host)
		refuse(work, "no host name", "This is not the name of a host.", false);
	else
		decide(work);
	if (is_over)
		return NULL;
	work->is_over = NULL;
	work->is_counted = true;
	gateway_count_question(gw, false);
	return work;
}
