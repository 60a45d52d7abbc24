/* SPDX-License-Identifier: Apache-2.0 */
/* What policy.c and policy_check.c share. */
#ifndef GATEWAY_POLICY_INTERNAL_H
#define GATEWAY_POLICY_INTERNAL_H

#include "gateway/policy.h"
#include "spec/spec_rule.h"

struct policy_rule {
	struct spec_rule rule;
	char *set; /* the set it came from, or NULL */
};

struct policy_rules {
	struct policy_rule *items;
	size_t n;
};

struct policy {
	enum spec_net net;
	bool shadow, ask;
	bool has_plane; /* the control plane's name leads there */
	enum spec_tls tls;
	struct policy_rules allow, deny;
	struct policy_rules passthrough; /* names only */
	struct spec_host_map *maps;
	size_t n_maps;
};

#endif
