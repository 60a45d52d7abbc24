/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec_within.h"

#include <errno.h>

#include "spec/spec_rule.h"

/* A rule that names an address leads there, wherever that is; beside "open", so does a name that somebody made lead
 * inward (spec.md). */
static int check_rule(const struct spec_network *net, const char *text, struct err *err)
{
	struct spec_rule rule;
	bool is_address;

	if (net->net == SPEC_NET_OPEN)
		return err_set(err, -EPERM,
			"rule '%s': beside \"open\" it may lead to private addresses, which this "
			"account may not reach",
			text);
	if (spec_rule_parse(text, &rule, err) < 0)
		return -EINVAL;
	is_address = rule.kind == SPEC_RULE_ADDRESS;
	spec_rule_done(&rule);
	return is_address ? err_set(err, -EPERM,
				    "rule '%s': this account may name hosts, not addresses", text)
	                  : 0;
}

/* The names of sets mean the host's own, but for those that the spec brings along. */
static int check_rules(const struct spec_network *net, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < net->allow.n; i++)
		if (net->allow.items[i][0] != '@')
			r = check_rule(net, net->allow.items[i], err);
	for (size_t i = 0; i < net->n_sets; i++)
		for (size_t k = 0; r == 0 && k < net->sets[i].rules.n; k++)
			r = check_rule(net, net->sets[i].rules.items[k], err);
	return r;
}

int spec_within_network(const struct spec_network *net, struct err *err)
{
	int r = check_rules(net, err);

	if (r == 0 && net->shadow)
		r = err_set(err, -EPERM, "shadow: this account's rules hold");
	if (r == 0 && net->n_maps > 0)
		r = err_set(err, -EPERM, "host_map: this account may not map names to addresses");
	if (r == 0 && net->resolvers.n > 0)
		r = err_set(err, -EPERM, "resolver: this account may not choose one");
	if (r == 0 && net->upstream_ca)
		r = err_set(err, -EPERM, "upstream_ca: this account may not add authorities");
	if (r == 0 && net->upstream_proxy)
		r = err_set(err, -EPERM, "upstream_proxy: this account may not choose one");
	if (r == 0 && net->n_publish > 0)
		r = err_set(err, -EPERM,
			"publish: this account may not open ports of the host: make a preview");
	return r;
}
