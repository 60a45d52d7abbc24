/* SPDX-License-Identifier: Apache-2.0 */
/* cloche secrets: src/remote does it. */
#include "cli/server_act.h"
#include "cli/verb.h"

static const struct option table[] = {
	{"host", 0, "HOST[:PORT]", "who gets it, inside verified TLS; may be given again",
		OPTION_WORDS, offsetof(struct server_options, hosts)},
	{"plain", 0, NULL, "they get it without TLS, too", OPTION_ON,
		offsetof(struct server_options, plain)},
	{"file", 0, "FILE", "the value is in this file; - is stdin", OPTION_TEXT,
		offsetof(struct server_options, file)},
	{NULL},
};
static const struct option_group groups[] = {{"Create", table}, {NULL}};

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	return server_act_check(server_act_secrets, options, args, n_args, err);
}

const struct verb verb_secrets = {
	.name = "secrets",
	.class = VERB_SERVER,
	.usage = "[list | create NAME | delete NAME...]",
	.help = "secrets of a control plane's account, which its sandboxes may use",
	.text = "The value is that of the variable NAME here, or in --file; it is told to nobody. "
		"Sandboxes name it with --secret. Admins only; without --server, root asks the one "
		"on this host.",
	.groups = groups,
	.options_size = sizeof(struct server_options),
	.done = server_act_done,
	.max_args = VERB_MANY,
	.is_of_server = true,
	.check = check,
};
