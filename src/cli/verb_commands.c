/* SPDX-License-Identifier: Apache-2.0 */
/* cloche commands: what was asked for, and what an agent ran in it. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/command_list.h"

FOLD_ADAPTERS(command_list)

static const struct fold fold = {FOLD_ROW};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return fold_run(cli, &fold, options, args, n_args, err);
}

const struct verb verb_commands = {
	.name = "commands",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "what was asked for, and what an agent ran in it, with results; outputs with "
		"--json",
	.text = "An agent's own commands are found in the process tree, its wrappers folded away.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
