/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/flow_head.h"
#include "gateway/policy_internal.h"
#include "gateway/policy_path.h"
#include "proto/address_range.h"
#include "util/scoped.h"

#define PLACE_MAX 300 /* bytes of a destination in a sentence */
#define LAST_WORD \
	"; trying again will not help: do without it, or ask whoever runs this sandbox for "

/* A query with what is worked out of it once. */
struct look {
	const struct policy *policy;
	const struct policy_query *q;
	struct str path; /* decoded */
	bool is_plain;   /* path means one thing only */
	uint8_t inner[16];
	bool has_inner; /* address is an IPv6 form around inner */
};

enum match {
	MATCH_NO,
	MATCH_IF_HTTP, /* as far as is known without method and path */
	MATCH_YES,
};

static bool names_method(const char *methods, const char *method, bool any_case)
{
	size_t n = strlen(method);

	for (const char *at = methods;; at++) {
		size_t len = strcspn(at, ",");

		if (len == n &&
			(any_case ? strncasecmp(at, method, n) : strncmp(at, method, n)) == 0)
			return true;
		at += len;
		if (!*at)
			return false;
	}
}

/* A rule for everything on a host does not care what a path means. */
static bool is_any_path(const char *pattern)
{
	return strcmp(pattern, "/**") == 0;
}

static bool matches_path(const struct look *look, const char *pattern, bool is_deny)
{
	if (is_any_path(pattern))
		return true;
	if (!look->is_plain)
		return is_deny;
	return is_deny ? policy_path_may_match(pattern, look->path.p)
	               : policy_path_matches(pattern, look->path.p);
}

static enum match match_request(const struct look *look, const struct spec_rule *rule, bool is_deny)
{
	const char *method = look->q->method;

	if (!rule->methods && !rule->path)
		return MATCH_YES;
	if (!method)
		return MATCH_IF_HTTP;
	if (rule->methods && !names_method(rule->methods, method, is_deny))
		return MATCH_NO;
	return !rule->path || matches_path(look, rule->path, is_deny) ? MATCH_YES : MATCH_NO;
}

/* Whether a rule is about this destination. is_by_address: by the address, not by the name. */
static bool match_place(
	const struct look *look, const struct spec_rule *rule, bool is_deny, bool *ret_by_address)
{
	const struct policy_query *q = look->q;

	*ret_by_address = false;
	if (rule->port && rule->port != q->port)
		return !is_deny && q->port == 0 && spec_rule_matches_host(rule, q->host);
	if (rule->kind != SPEC_RULE_ADDRESS)
		return spec_rule_matches_host(rule, q->host);
	*ret_by_address = true;
	if (!q->has_address)
		return false;
	/* What an address carries can be refused by it, but not allowed. */
	return spec_rule_matches_address(rule, q->address) ||
	       (is_deny && look->has_inner && spec_rule_matches_address(rule, look->inner));
}

static void say(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(char *out, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out, size, fmt, ap);
	va_end(ap);
}

static void name_rule(struct policy_answer *a, const char *word, const struct policy_rule *rule)
{
	if (rule->set)
		say(a->rule, sizeof(a->rule), "%s %s (%s)", word, rule->set, rule->rule.text);
	else
		say(a->rule, sizeof(a->rule), "%s %s", word, rule->rule.text);
}

/* "GET /path on host port 443", "192.0.2.1 port 22" */
static void format_place(const struct policy_query *q, char *out, size_t size)
{
	char address[FLOW_ADDRESS_SIZE] = "", port[16] = "";

	if (q->has_address)
		flow_address_text(q->address, address);
	if (q->port)
		snprintf(port, sizeof(port), " port %u", q->port);
	if (q->method)
		say(out, size, "%.16s %.100s on %.120s%s", q->method, q->path,
			q->host ? q->host : address, port);
	else
		say(out, size, "%.200s%s", q->host ? q->host : address, port);
}

/* Names of rules as options that people can copy. */
static void format_wish(const struct policy_query *q, bool by_address, char *out, size_t size)
{
	char address[FLOW_ADDRESS_SIZE] = "";
	const char *host = by_address ? NULL : q->host;

	if (q->has_address)
		flow_address_text(q->address, address);
	if (!host)
		host = address;
	if (q->port)
		say(out, size, strchr(host, ':') ? "'--allow [%.200s]:%u'" : "'--allow %.200s:%u'",
			host, q->port);
	else
		say(out, size, "'--allow %.200s'", host);
}

static bool deny_by_rule(struct look *look, struct policy_answer *a, bool *ret_only_http)
{
	const struct policy_rules *rules = &look->policy->deny;
	char place[PLACE_MAX];

	for (size_t i = 0; i < rules->n; i++) {
		const struct policy_rule *rule = &rules->items[i];
		enum match match = MATCH_NO;
		bool by_address;

		if (match_place(look, &rule->rule, true, &by_address))
			match = match_request(look, &rule->rule, true);
		*ret_only_http |= match == MATCH_IF_HTTP && look->q->port;
		if (match != MATCH_YES)
			continue;
		name_rule(a, "deny", rule);
		format_place(look->q, place, sizeof(place));
		say(a->reason, sizeof(a->reason),
			"%s is refused by a rule of this sandbox (%s)" LAST_WORD
			"a change of that rule",
			place, a->rule);
		return true;
	}
	return false;
}

/* The best that some rule to allow says. */
struct best {
	enum match match;
	const struct policy_rule *rule;
};

struct allowed {
	struct best by_address, by_name;
	bool is_named;                  /* by a rule for a host, not for everything */
	const struct policy_rule *near; /* one that is about this host, but not this request */
};

static void look_up(struct look *look, struct allowed *allowed)
{
	const struct policy_rules *rules = &look->policy->allow;

	for (size_t i = 0; i < rules->n; i++) {
		const struct policy_rule *rule = &rules->items[i];
		struct best *best;
		enum match match;
		bool by_address;

		if (!match_place(look, &rule->rule, false, &by_address))
			continue;
		match = match_request(look, &rule->rule, false);
		best = by_address ? &allowed->by_address : &allowed->by_name;
		if (match == MATCH_NO && !allowed->near)
			allowed->near = rule;
		if (match != MATCH_NO && !by_address && rule->rule.kind != SPEC_RULE_ANY)
			allowed->is_named = true;
		if (match > best->match)
			*best = (struct best){.match = match, .rule = rule};
	}
}

static bool is_mapped(const struct look *look)
{
	const struct policy_query *q = look->q;
	const struct spec_host_map *map = policy_map(look->policy, q->host, q->port);
	uint8_t address[16];

	return map && spec_rule_address(slice_of(map->address), address) == 0 &&
	       memcmp(address, q->address, sizeof(address)) == 0;
}

/* Whether a rule to allow names what an address carries. */
static bool names_inner(const struct look *look)
{
	for (size_t i = 0; i < look->policy->allow.n; i++)
		if (spec_rule_matches_address(&look->policy->allow.items[i].rule, look->inner))
			return true;
	return false;
}

static const struct address_range *range_of(const struct look *look, const struct allowed *allowed)
{
	static const struct address_range own = {.what = "an address of the host itself"};
	const struct address_range *range = address_range_find(look->q->address);
	const struct policy *policy = look->policy;

	if (look->q->is_own)
		range = &own;
	if (allowed->by_address.match != MATCH_NO)
		range = look->has_inner && !names_inner(look) ? address_range_find(look->inner)
		                                              : NULL;
	if (range && range->by_name && policy->net == SPEC_NET_OPEN && allowed->is_named)
		range = NULL;
	return range;
}

static bool deny_by_range(
	struct look *look, const struct allowed *allowed, struct policy_answer *a, bool *ret_shadow)
{
	const struct address_range *range;
	char address[FLOW_ADDRESS_SIZE], wish[PLACE_MAX], place[PLACE_MAX];

	if (!look->q->has_address || is_mapped(look))
		return false;
	range = range_of(look, allowed);
	if (!range)
		return false;
	*ret_shadow = range->is_in_shadow;
	flow_address_text(look->q->address, address);
	format_place(look->q, place, sizeof(place));
	format_wish(look->q, true, wish, sizeof(wish));
	say(a->rule, sizeof(a->rule), "default: %s", range->what);
	if (look->q->host)
		say(a->reason, sizeof(a->reason),
			"%s leads to %s, %s, which sandboxes do not reach" LAST_WORD "%s", place,
			address, range->what, wish);
	else
		say(a->reason, sizeof(a->reason),
			"%s is %s, which sandboxes do not reach" LAST_WORD "%s", place, range->what,
			wish);
	return true;
}

static void say_not_listed(
	const struct look *look, const struct allowed *allowed, struct policy_answer *a)
{
	char place[PLACE_MAX], wish[PLACE_MAX];

	format_place(look->q, place, sizeof(place));
	format_wish(look->q, false, wish, sizeof(wish));
	say(a->rule, sizeof(a->rule), "default: not in the allow list");
	if (look->q->method && allowed->near && !look->is_plain && allowed->near->rule.path)
		say(a->reason, sizeof(a->reason),
			"%s has a path that may mean different places (dots, empty parts or "
			"encoded characters): write it plainly; %.60s is what is allowed",
			place, allowed->near->rule.text);
	else if (look->q->method && allowed->near)
		say(a->reason, sizeof(a->reason),
			"%s is not in this sandbox's allow list, which has '%.60s' for this "
			"host" LAST_WORD "a rule",
			place, allowed->near->rule.text);
	else
		say(a->reason, sizeof(a->reason),
			"%s is %snot in this sandbox's allow list" LAST_WORD "%s", place,
			look->q->host ? "" : "a raw address and ", wish);
}

static bool is_udp(const struct policy_query *q)
{
	return q->protocol && strcmp(q->protocol, "udp") == 0;
}

/* The control plane's name: the spec says whether there is one, and rules to deny which requests it gets. It has no
 * address, so where one is asked for under this name it is another's. */
static enum policy_verdict decide_plane(
	struct look *look, struct policy_answer *a, bool *ret_shadow)
{
	uint16_t port = look->q->port;
	bool is_elsewhere = port && (port != SPEC_PLANE_PORT || is_udp(look->q));

	*ret_shadow = false;
	if (!look->policy->has_plane) {
		say(a->rule, sizeof(a->rule), "default: no control plane");
		say(a->reason, sizeof(a->reason),
			"%s leads to the control plane, which this sandbox was not given" LAST_WORD
			"one made with \"control_plane\": true",
			SPEC_PLANE_HOST);
		return POLICY_DENY;
	}
	if (is_elsewhere || look->q->has_address) {
		say(a->rule, sizeof(a->rule), "default: control plane");
		say(a->reason, sizeof(a->reason),
			"the control plane is at TCP port %d of %s alone, without TLS: use "
			"http://%s",
			SPEC_PLANE_PORT, SPEC_PLANE_HOST, SPEC_PLANE_HOST);
		return POLICY_DENY;
	}
	*ret_shadow = true;
	if (deny_by_rule(look, a, &a->only_http))
		return POLICY_DENY;
	say(a->rule, sizeof(a->rule), "control_plane");
	return POLICY_ALLOW;
}

static enum policy_verdict decide(struct look *look, struct policy_answer *a, bool *ret_shadow)
{
	struct allowed allowed = {0};
	const struct policy *policy = look->policy;
	struct best best;

	if (policy_is_plane(look->q->host))
		return decide_plane(look, a, ret_shadow);
	if (deny_by_rule(look, a, &a->only_http))
		return POLICY_DENY;
	look_up(look, &allowed);
	if (deny_by_range(look, &allowed, a, ret_shadow))
		return POLICY_DENY;
	best = allowed.by_address.match >= allowed.by_name.match ? allowed.by_address
	                                                         : allowed.by_name;
	if (policy->net == SPEC_NET_ALLOW && best.match == MATCH_NO) {
		say_not_listed(look, &allowed, a);
		return policy->ask ? POLICY_ASK : POLICY_DENY;
	}
	if (policy->net == SPEC_NET_NONE) {
		say(a->rule, sizeof(a->rule), "default: no network");
		say(a->reason, sizeof(a->reason), "this sandbox has no network");
		return POLICY_DENY;
	}
	a->only_http |=
		policy->net == SPEC_NET_ALLOW && best.match == MATCH_IF_HTTP && look->q->port;
	a->is_named = allowed.is_named;
	if (best.rule)
		name_rule(a, "allow", best.rule);
	else
		say(a->rule, sizeof(a->rule), "default: open");
	return POLICY_ALLOW;
}

/* A rule with a method or path is about HTTP over TCP, and so is what it lets through. */
static enum policy_verdict refuse_udp(const struct look *look, struct policy_answer *a)
{
	char place[PLACE_MAX];

	format_place(look->q, place, sizeof(place));
	say(a->rule, sizeof(a->rule), "default: no UDP beside rules for requests");
	say(a->reason, sizeof(a->reason),
		"%s over UDP cannot be read as HTTP, which the rules of this sandbox want for this "
		"host: use TCP",
		place);
	return POLICY_DENY;
}

void policy_check(const struct policy *policy, const struct policy_query *query,
	struct policy_answer *ret_answer)
{
	struct look look = {.policy = policy, .q = query};
	struct policy_answer a = {0};
	bool lets_shadow = true;

	look.is_plain = query->method && policy_path_read(query->path, &look.path);
	look.has_inner = query->has_address && address_range_carried(query->address, look.inner);
	a.verdict = decide(&look, &a, &lets_shadow);
	if (a.only_http && is_udp(query))
		a.verdict = refuse_udp(&look, &a);
	if (a.verdict != POLICY_ALLOW || policy->shadow)
		a.only_http = false;
	if (a.verdict == POLICY_DENY && policy->shadow && lets_shadow &&
		policy->net != SPEC_NET_NONE) {
		a.verdict = POLICY_ALLOW;
		a.shadow = true;
	}
	if (a.verdict == POLICY_ALLOW && policy_is_plane(query->host))
		a.only_http = query->port != 0;
	str_done(&look.path);
	*ret_answer = a;
}
