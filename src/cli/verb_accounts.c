/* SPDX-License-Identifier: Apache-2.0 */
/* cloche accounts: src/remote does it. */
#include "cli/server_act.h"
#include "cli/verb.h"

static const struct option table[] = {
	{"name", 0, "NAME", "a name for people", OPTION_TEXT,
		offsetof(struct server_options, name)},
	{"max-sandboxes", 0, "N", "that it may have at once", OPTION_COUNT,
		offsetof(struct server_options, max_sandboxes)},
	{"max-execs", 0, "N", "that it may have under way at once", OPTION_COUNT,
		offsetof(struct server_options, max_execs)},
	{NULL},
};
static const struct option_group groups[] = {{"Create", table}, {NULL}};

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	return server_act_check(server_act_accounts, options, args, n_args, err);
}

const struct verb verb_accounts = {
	.name = "accounts",
	.class = VERB_SERVER,
	.usage = "[list | create ID]",
	.help = "accounts of a control plane",
	.text = "For admins of the account default; without --server, root asks the control plane "
		"on this host.",
	.groups = groups,
	.options_size = sizeof(struct server_options),
	.done = server_act_done,
	.max_args = VERB_MANY,
	.is_of_server = true,
	.check = check,
};
