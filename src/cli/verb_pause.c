/* SPDX-License-Identifier: Apache-2.0 */
/* cloche pause */
#include "cli/life.h"
#include "cli/verb.h"

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return life_ask_all(cli, "pause", args, n_args, err);
}

const struct verb verb_pause = {
	.name = "pause",
	.class = VERB_RUN,
	.usage = "ID...",
	.help = "freeze everything in a sandbox",
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
