/* SPDX-License-Identifier: Apache-2.0 */
/* cloche wake */
#include "cli/life.h"
#include "cli/verb.h"

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return life_ask_all(cli, "wake", args, n_args, err);
}

const struct verb verb_wake = {
	.name = "wake",
	.class = VERB_RUN,
	.usage = "ID...",
	.help = "let a paused sandbox go on",
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
