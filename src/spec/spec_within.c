/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec_within.h"

#include <errno.h>

#include "spec/spec_rule.h"

#define WHO SPEC_WITHIN_WHO("private")

/* A rule that names an address leads there, wherever that is; beside "open", so does a name that somebody made lead
 * inward (spec.md). */
static int check_rule(
	const struct spec_network *net, const char *key, const char *text, struct err *err)
{
	struct spec_rule rule;
	bool is_address;

	if (net->net == SPEC_NET_OPEN)
		return err_set(err, -EPERM,
			"%s: rule '%s': beside \"open\" it may lead to private addresses, which "
			"this account may not reach" WHO,
			key, text);
	if (spec_rule_parse(text, &rule, err) < 0)
		return -EINVAL;
	is_address = rule.kind == SPEC_RULE_ADDRESS;
	spec_rule_done(&rule);
	return is_address ? err_set(err, -EPERM,
				    "%s: rule '%s': this account may name hosts, not addresses" WHO,
				    key, text)
	                  : 0;
}

/* The names of sets mean the host's own, but for those that the spec brings along. */
static int check_rules(const struct spec_network *net, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < net->allow.n; i++)
		if (net->allow.items[i][0] != '@')
			r = check_rule(net, "allow", net->allow.items[i], err);
	for (size_t i = 0; i < net->n_sets; i++)
		for (size_t k = 0; r == 0 && k < net->sets[i].rules.n; k++)
			r = check_rule(net, "sets", net->sets[i].rules.items[k], err);
	return r;
}

int spec_within_network(const struct spec_network *net, struct err *err)
{
	const struct {
		bool is_named;
		const char *why;
	} keys[] = {
		{net->shadow, "shadow: this account's rules hold" WHO},
		{net->n_maps > 0, "host_map: this account may not map names to addresses" WHO},
		{net->resolvers.n > 0, "resolver: this account may not choose one" WHO},
		{net->upstream_ca, "upstream_ca: this account may not add authorities" WHO},
		{net->upstream_proxy, "upstream_proxy: this account may not choose one" WHO},
		{net->n_publish > 0,
			"publish: this account may not open ports of the host: make a preview" WHO},
	};
	int r = check_rules(net, err);

	for (size_t i = 0; r == 0 && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].is_named)
			r = err_set(err, -EPERM, "%s", keys[i].why);
	return r;
}
