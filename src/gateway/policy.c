/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a policy, and its questions about names. What is let through is decided in policy_check.c. */
#include "gateway/policy.h"

#include <errno.h>
#include <string.h>

#include "gateway/policy_internal.h"
#include "spec/spec_network_parse.h"
#include "util/mem.h"

#define RULES_MAX 8192 /* of one kind, sets opened */

static int add_rule(struct policy_rules *rules, const char *text, const char *set, struct err *err)
{
	struct policy_rule rule = {0};
	int r;

	if (rules->n == RULES_MAX)
		return err_set(err, -E2BIG, "more than %d network rules", RULES_MAX);
	r = spec_rule_parse(text, &rule.rule, err);
	if (r < 0)
		return r;
	rule.set = mem_dup(set);
	rules->items = mem_grow(rules->items, rules->n + 1, sizeof(rule));
	rules->items[rules->n++] = rule;
	return 0;
}

static int add_rules(struct policy_rules *rules, const struct spec_network *net,
	const struct spec_words *words, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < words->n; i++) {
		const char *text = words->items[i];
		const struct spec_set *set = *text == '@' ? spec_network_set(net, text) : NULL;

		if (*text != '@')
			r = add_rule(rules, text, NULL, err);
		else if (!set)
			r = err_set(err, -ENOENT, "there is no set '%.200s'", text);
		for (size_t k = 0; set && r == 0 && k < set->rules.n; k++)
			r = add_rule(rules, set->rules.items[k], text, err);
	}
	return r;
}

static void add_maps(struct policy *policy, const struct spec_network *net)
{
	policy->maps = new0_n(struct spec_host_map, net->n_maps);
	policy->n_maps = net->n_maps;
	for (size_t i = 0; i < net->n_maps; i++) {
		policy->maps[i] = net->maps[i];
		policy->maps[i].name = mem_dup(net->maps[i].name);
		policy->maps[i].address = mem_dup(net->maps[i].address);
	}
}

int policy_new(const struct spec_network *network, struct policy **ret_policy, struct err *err)
{
	scoped(policy) struct policy *policy = new0(struct policy);
	int r;

	policy->net = network->net;
	policy->shadow = network->shadow;
	policy->ask = network->ask;
	policy->has_plane = network->control_plane;
	policy->tls = network->tls;
	add_maps(policy, network);
	r = add_rules(&policy->allow, network, &network->allow, err);
	if (r == 0)
		r = add_rules(&policy->deny, network, &network->deny, err);
	if (r == 0)
		r = add_rules(&policy->passthrough, network, &network->tls_passthrough, err);
	if (r < 0)
		return r;
	*ret_policy = take(&policy);
	return 0;
}

static void rules_done(struct policy_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++) {
		spec_rule_done(&rules->items[i].rule);
		free(rules->items[i].set);
	}
	free(rules->items);
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	rules_done(&policy->allow);
	rules_done(&policy->deny);
	rules_done(&policy->passthrough);
	for (size_t i = 0; i < policy->n_maps; i++)
		spec_host_map_done(&policy->maps[i]);
	free(policy->maps);
	free(policy);
}

bool policy_wants_http(const struct policy *policy, const char *host, uint16_t port)
{
	const struct policy_rules *lists[] = {&policy->allow, &policy->deny};

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < lists[i]->n; k++) {
			const struct spec_rule *rule = &lists[i]->items[k].rule;

			if (!rule->methods && !rule->path)
				continue;
			if (rule->port && port && rule->port != port)
				continue;
			if (rule->kind == SPEC_RULE_ADDRESS || spec_rule_matches_host(rule, host))
				return true;
		}
	return false;
}

enum spec_tls policy_tls(const struct policy *policy, const char *host)
{
	for (size_t i = 0; host && i < policy->passthrough.n; i++)
		if (spec_rule_matches_host(&policy->passthrough.items[i].rule, host))
			return SPEC_TLS_PASSTHROUGH;
	return policy->tls;
}

/* How well a map fits: 0 not at all; a name of its own before *.NAME, longer before shorter, then with a port. */
static size_t fit(const struct spec_host_map *map, const char *host, uint16_t port)
{
	bool is_below = map->name[0] == '*';
	const struct spec_rule rule = {
		.kind = is_below ? SPEC_RULE_BELOW : SPEC_RULE_NAME,
		.host = map->name + (is_below ? 2 : 0),
	};

	if ((map->port && map->port != port) || !spec_rule_matches_host(&rule, host))
		return 0;
	return (is_below ? 0 : 4096) + 2 * strlen(map->name) + (map->port != 0);
}

const struct spec_host_map *policy_map(const struct policy *policy, const char *host, uint16_t port)
{
	const struct spec_host_map *best = NULL;
	size_t best_fit = 0;

	for (size_t i = 0; host && i < policy->n_maps; i++) {
		size_t f = fit(&policy->maps[i], host, port);

		if (f > best_fit) {
			best_fit = f;
			best = &policy->maps[i];
		}
	}
	return best;
}

bool policy_is_plane(const char *host)
{
	return host && strcmp(host, SPEC_PLANE_HOST) == 0;
}

bool policy_is_mapped(const struct policy *policy, const char *host)
{
	if (policy_is_plane(host))
		return true;
	for (size_t i = 0; host && i < policy->n_maps; i++)
		if (fit(&policy->maps[i], host, policy->maps[i].port))
			return true;
	return false;
}
