/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and requests of any bytes, a line each: rules to allow, "-" and rules to deny, then HOST, METHOD, PATH and 16
 * bytes of address. What is let through must follow from a rule that says so. */
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/policy.h"
#include "proto/address_range.h"
#include "spec/spec_rule.h"
#include "util/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_lines(char **rest, struct spec_network *net)
{
	char *line;

	while ((line = strsep(rest, "\n")) && *line && *rest) {
		struct spec_rule rule;

		if (spec_rule_parse(line + (*line == '-'), &rule, NULL) < 0)
			continue;
		/* Written again it is the same rule. */
		spec_words_add(*line == '-' ? &net->deny : &net->allow, rule.text);
		spec_rule_done(&rule);
	}
}

/* Whether a rule to allow names the address or, with open, the host. */
static bool is_named(const struct spec_network *net, const struct policy_query *q)
{
	bool is = false;

	for (size_t i = 0; i < net->allow.n; i++) {
		struct spec_rule rule;

		if (spec_rule_parse(net->allow.items[i], &rule, NULL) < 0)
			abort();
		is |= spec_rule_matches_address(&rule, q->address);
		is |= net->net == SPEC_NET_OPEN && rule.kind != SPEC_RULE_ANY &&
		      spec_rule_matches_host(&rule, q->host);
		spec_rule_done(&rule);
	}
	return is;
}

/* Nothing inward without a rule that says so. */
static void ask(const struct policy *policy, const struct spec_network *net, char *rest)
{
	struct policy_query q = {.port = 443, .protocol = "tcp"};
	struct policy_answer a, without;
	struct str host = {0};
	char *line = strsep(&rest, "\n");

	if (line && spec_rule_host_name(slice_of(line), &host) == 0)
		q.host = host.p;
	q.method = strsep(&rest, "\n");
	q.path = rest ? strsep(&rest, "\n") : NULL;
	if (!q.path)
		q.method = NULL;
	q.has_address = rest && strlen(rest) >= sizeof(q.address);
	if (q.has_address)
		memcpy(q.address, rest, sizeof(q.address));
	policy_check(policy, &q, &a);
	assert((a.verdict == POLICY_ALLOW) == !*a.reason);
	assert(*a.rule);
	if (a.verdict == POLICY_ALLOW && q.has_address && address_range_find(q.address))
		assert(is_named(net, &q));
	/* What is allowed with its request is not refused before it is known. */
	q.method = q.path = NULL;
	policy_check(policy, &q, &without);
	assert(a.verdict != POLICY_ALLOW || without.verdict == POLICY_ALLOW);
	(void)policy_wants_http(policy, q.host, q.port);
	(void)policy_tls(policy, q.host);
	str_done(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_copy(data, size), *rest = text;
	struct spec_network net;
	struct policy *policy = NULL;

	spec_network_init(&net);
	net.net = size & 1 ? SPEC_NET_OPEN : SPEC_NET_ALLOW;
	add_lines(&rest, &net);
	if (policy_new(&net, &policy, NULL) < 0)
		abort();
	if (rest)
		ask(policy, &net, rest);
	policy_free(policy);
	spec_network_done(&net);
	free(text);
	return 0;
}
