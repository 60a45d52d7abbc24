/* SPDX-License-Identifier: Apache-2.0 */
/* cloche suspend */
#include "cli/life.h"
#include "cli/verb.h"

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return life_ask_all(cli, "suspend", args, n_args, err);
}

const struct verb verb_suspend = {
	.name = "suspend",
	.class = VERB_RUN,
	.usage = "ID...",
	.help = "end a sandbox's processes and keep its files, to go on with resume or fork",
	.text = "Files of its root and its copies of folders stay; memory does not, so neither do "
		"/dev/shm and\n"
		"what was mounted on a tmpfs inside. Its record stays open.",
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
