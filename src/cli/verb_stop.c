/* SPDX-License-Identifier: Apache-2.0 */
/* cloche stop */
#include "cli/life.h"
#include "cli/verb.h"

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return life_ask_all(cli, "stop", args, n_args, err);
}

const struct verb verb_stop = {
	.name = "stop",
	.class = VERB_RUN,
	.usage = "ID...",
	.help = "end a sandbox: its record and change sets stay",
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
