/* SPDX-License-Identifier: Apache-2.0 */
/* cloche webhooks: src/remote does it. */
#include "cli/server_act.h"
#include "cli/verb.h"

static const struct option table[] = {
	{"event", 0, "KIND",
		"of this kind only (exec.end, sandbox.stopped, ...); may be given again",
		OPTION_WORDS, offsetof(struct server_options, events)},
	{"sandbox", 0, "ID", "of this sandbox only", OPTION_TEXT,
		offsetof(struct server_options, sandbox)},
	{NULL},
};
static const struct option_group groups[] = {{"Create", table}, {NULL}};

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	return server_act_check(server_act_webhooks, options, args, n_args, err);
}

const struct verb verb_webhooks = {
	.name = "webhooks",
	.class = VERB_SERVER,
	.usage = "[list | create URL | delete ID... | deliveries ID | redeliver ID DELIVERY...]",
	.help = "who is told of what happens at a control plane",
	.text = "create prints the secret that deliveries are signed with, which is shown this "
		"once. docs/server.md says what is sent. Admins only; without --server, root asks "
		"the one on this host.",
	.groups = groups,
	.options_size = sizeof(struct server_options),
	.done = server_act_done,
	.max_args = VERB_MANY,
	.is_of_server = true,
	.check = check,
};
