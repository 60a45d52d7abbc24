/* SPDX-License-Identifier: Apache-2.0 */
/* cloche audit: src/remote does it. */
#include "cli/server_act.h"
#include "cli/verb.h"

static const struct option table[] = {
	{"since", 0, "WHEN", "from this clock time (UTC) on, or this long ago (2h)", OPTION_TEXT,
		offsetof(struct server_options, since)},
	{"until", 0, "WHEN", "up to here", OPTION_TEXT, offsetof(struct server_options, until)},
	{"limit", 0, "N", "the newest so many (100)", OPTION_COUNT,
		offsetof(struct server_options, limit)},
	{"follow", 'f', NULL, "go on with what comes", OPTION_ON,
		offsetof(struct server_options, follow)},
	{NULL},
};
static const struct option_group groups[] = {{"Options", table}, {NULL}};

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	return server_act_check(server_act_audit, options, args, n_args, err);
}

const struct verb verb_audit = {
	.name = "audit",
	.class = VERB_SERVER,
	.usage = "",
	.help = "who did what at a control plane: its audit log",
	.text = "The newest last. Admins only; without --server, root asks the control plane on "
		"this host.",
	.groups = groups,
	.options_size = sizeof(struct server_options),
	.done = server_act_done,
	.max_args = 0,
	.is_of_server = true,
	.check = check,
};
