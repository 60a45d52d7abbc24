/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gateway/mitm.h"

#define NAMES_AGREE "default: names must agree"
#define READABLE    "default: TLS must be readable"

static const char alert[] = {21 /* alert */, 3, 3, 0, 2, 2 /* fatal */, 49 /* access_denied */};

struct slice mitm_alert(void)
{
	return (struct slice){.p = alert, .len = sizeof(alert)};
}

static void ask(const struct policy *policy, const struct mitm_flow *flow, const char *host,
	struct policy_answer *ret)
{
	struct policy_query query = {.host = host && host[0] ? host : NULL,
		.has_address = flow->has_address,
		.port = flow->port,
		.protocol = "tcp"};

	memcpy(query.address, flow->address, sizeof(query.address));
	policy_check(policy, &query, ret);
}

/* For a reason that stands in no rule. With --shadow it is told and let through. */
static void object(struct mitm_decision *d, const struct spec_network *network, const char *rule)
{
	d->answer.verdict = network->shadow ? POLICY_ALLOW : POLICY_DENY;
	d->answer.shadow = network->shadow;
	(void)snprintf(d->answer.rule, sizeof(d->answer.rule), "%s", rule);
	if (!network->shadow)
		d->verdict = MITM_REFUSE;
}

static bool led_here(const struct mitm_flow *flow, const char *name)
{
	return (flow->host && strcmp(flow->host, name) == 0) ||
	       (flow->has_name && flow->has_name(flow->data, name));
}

/* An address as a name is against RFC 6066, but says no more than the flow itself does. */
static bool is_own_address(const struct mitm_flow *flow, const struct url_host *host)
{
	return host->kind != URL_NAME && flow->has_address &&
	       memcmp(host->address, flow->address, sizeof(host->address)) == 0;
}

static void check_name(struct mitm_decision *d, const struct policy *policy,
	const struct spec_network *network, const struct mitm_flow *flow, const char *name)
{
	if (!flow->host || led_here(flow, name) ||
		(network->net == SPEC_NET_OPEN && flow->has_address)) {
		ask(policy, flow, name, &d->answer);
		return;
	}
	(void)snprintf(d->answer.reason, sizeof(d->answer.reason),
		"TLS asks for '%s' at an address that was given out for '%s': ask for the name "
		"you look up",
		name, flow->host);
	object(d, network, NAMES_AGREE);
}

/* A name that nobody can read may be any name. */
static void check_unreadable(
	struct mitm_decision *d, const struct spec_network *network, const struct tls_hello *hello)
{
	d->verdict = MITM_PASSTHROUGH;
	d->is_unreadable = true;
	if (network->net == SPEC_NET_OPEN)
		return;
	(void)snprintf(d->answer.reason, sizeof(d->answer.reason),
		"the TLS hello cannot be read (%s), so nobody knows which host it is for",
		hello->why ? hello->why : "no reason given");
	object(d, network, READABLE);
}

void mitm_decide(const struct policy *policy, const struct spec_network *network,
	const struct mitm_flow *flow, const struct tls_hello *hello, struct mitm_decision *d)
{
	bool has_name = hello->result == TLS_HELLO_NAME && !is_own_address(flow, &hello->host);

	*d = (struct mitm_decision){.answer = {.verdict = POLICY_ALLOW}};
	(void)snprintf(d->host, sizeof(d->host), "%s",
		has_name ? hello->host.text : (flow->host ? flow->host : ""));
	if (hello->result == TLS_HELLO_MALFORMED) {
		check_unreadable(d, network, hello);
		return;
	}
	d->verdict = policy_tls(policy, d->host[0] ? d->host : NULL) == SPEC_TLS_PASSTHROUGH
	                     ? MITM_PASSTHROUGH
	                     : MITM_INTERCEPT;
	if (has_name)
		check_name(d, policy, network, flow, d->host);
	else
		ask(policy, flow, d->host, &d->answer);
	if (d->answer.verdict != POLICY_ALLOW && flow->has_address)
		d->verdict = MITM_REFUSE;
	if (d->verdict == MITM_PASSTHROUGH && d->answer.only_http) {
		(void)snprintf(d->answer.reason, sizeof(d->answer.reason),
			"the rule for '%s' names requests, which cannot be read since its TLS is "
			"passed through",
			d->host);
		object(d, network, READABLE);
	}
	/* To be told why in a certificate that it would not accept anyway. */
	if (!flow->has_address && d->verdict == MITM_PASSTHROUGH)
		d->verdict = MITM_REFUSE;
}
