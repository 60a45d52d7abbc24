/* SPDX-License-Identifier: Apache-2.0 */
/* cloche tree: the programs that ran, and which started which. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/process_tree.h"

FOLD_ADAPTERS(process_tree)

static const struct fold fold = {FOLD_ROW, .needs_trace = true};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return fold_run(cli, &fold, options, args, n_args, err);
}

const struct verb verb_tree = {
	.name = "tree",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "the programs that ran, and which started which",
	.text = "A node for each program; one that replaces another in its process stands below "
		"it.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
