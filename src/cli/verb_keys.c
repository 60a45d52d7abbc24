/* SPDX-License-Identifier: Apache-2.0 */
/* cloche keys: src/remote does it. */
#include "cli/server_act.h"
#include "cli/verb.h"

static const struct option table[] = {
	{"name", 0, "NAME", "what it is for", OPTION_TEXT, offsetof(struct server_options, name)},
	{"role", 0, "ROLE", "admin (default), member or auditor", OPTION_TEXT,
		offsetof(struct server_options, role)},
	{"account", 0, "ID", "of another account: for admins of default", OPTION_TEXT,
		offsetof(struct server_options, account)},
	{"rate-limit", 0, "N", "requests a second (200)", OPTION_COUNT,
		offsetof(struct server_options, rate_limit)},
	{NULL},
};
static const struct option_group groups[] = {{"Create", table}, {NULL}};

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	return server_act_check(server_act_keys, options, args, n_args, err);
}

const struct verb verb_keys = {
	.name = "keys",
	.class = VERB_SERVER,
	.usage = "[list | create | revoke ID...]",
	.help = "keys of a control plane's account",
	.text = "create prints the key, which is shown this once. Admins only; without --server, "
		"root asks the one on this host.",
	.groups = groups,
	.options_size = sizeof(struct server_options),
	.done = server_act_done,
	.max_args = VERB_MANY,
	.is_of_server = true,
	.check = check,
};
