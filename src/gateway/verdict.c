/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/verdict.h"

#include <stdio.h>
#include <string.h>

#include "gateway/gateway_internal.h"
#include "gateway/own_address.h"
#include "spec/spec_rule.h"

/* The better answer of two names for one address: it is enough that one of them may be reached. */
static int rank(const struct policy_answer *answer)
{
	switch (answer->verdict) {
	case POLICY_ALLOW:
		return answer->shadow ? 1 : 3;
	case POLICY_ASK:
		return 2;
	case POLICY_DENY:
		return 0;
	}
	return 0;
}

void verdict_of(struct gateway *gw, const char *host, const uint8_t address[16], uint16_t port,
	const char *protocol, struct policy_answer *ret)
{
	struct policy_query query = {
		.host = host, .has_address = address != NULL, .port = port, .protocol = protocol};

	if (address)
		memcpy(query.address, address, sizeof(query.address));
	policy_check(gw->policy, &query, ret);
	/* What is refused all the same is not looked up. */
	if (!address || ret->verdict == POLICY_DENY || !own_address_is(gw->route_fd, address))
		return;
	query.is_own = true;
	policy_check(gw->policy, &query, ret);
}

static void find_real(struct gateway *gw, const uint8_t address[16], uint16_t port,
	const char *protocol, struct verdict *v)
{
	int64_t now_ns = poller_now_ns(gw->poller);
	struct policy_answer answer;
	const char *host;

	v->has_address = true;
	memcpy(v->address, address, sizeof(v->address));
	v->port = port;
	v->host = names_find(gw->names, address, 0, now_ns);
	verdict_of(gw, v->host, address, port, protocol, &v->answer);
	for (size_t i = 1; v->host && (host = names_find(gw->names, address, i, now_ns)); i++) {
		verdict_of(gw, host, address, port, protocol, &answer);
		if (rank(&answer) > rank(&v->answer)) {
			v->host = host;
			v->answer = answer;
		}
	}
}

/* A synthetic address leads where its name does, or nowhere. */
static void find_synthetic(struct gateway *gw, const uint8_t address[16], uint16_t port,
	const char *protocol, struct verdict *v)
{
	int64_t now_ns = poller_now_ns(gw->poller);
	const struct spec_host_map *map;

	v->port = port;
	v->host = names_find(gw->names, address, 0, now_ns);
	if (!v->host) {
		verdict_of(gw, NULL, address, port, protocol, &v->answer);
		v->answer.verdict = POLICY_DENY;
		snprintf(v->answer.reason, sizeof(v->answer.reason),
			"This address stands for a name that was not asked for lately; look the "
			"name "
			"up again.");
		return;
	}
	verdict_of(gw, v->host, NULL, port, protocol, &v->answer);
	map = policy_map(gw->policy, v->host, port);
	if (!map || spec_rule_address(slice_of(map->address), v->address) < 0)
		return;
	v->has_address = true;
	if (map->to_port)
		v->port = map->to_port;
}

void verdict_find(struct gateway *gw, const uint8_t address[16], uint16_t port,
	const char *protocol, struct verdict *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (names_is_synthetic(address))
		find_synthetic(gw, address, port, protocol, ret);
	else
		find_real(gw, address, port, protocol, ret);
}

bool verdict_still_holds(struct gateway *gw, const struct flow_head *head, const uint8_t *address,
	struct policy_answer *ret_answer)
{
	verdict_of(gw, head->host, address, head->port, head->protocol, ret_answer);
	return ret_answer->verdict == POLICY_ALLOW ||
	       (ret_answer->verdict == POLICY_ASK && head->was_asked);
}

void verdict_tell(struct gateway *gw, const struct flow_head *head,
	const struct policy_answer *answer, const char *stage)
{
	struct event ev = flow_head_event(head, EVENT_NET_REFUSED);

	event_set_text(&ev, rule, answer->rule);
	event_set_text(&ev, reason, answer->reason);
	event_set_text(&ev, stage, stage);
	if (answer->shadow)
		event_set(&ev, shadow, true);
	channel_event(gw->channel, head->owner.cgroup, &ev);
}
