/* SPDX-License-Identifier: Apache-2.0 */
/* cloche files: the files that were read, written, made, moved, deleted or denied. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/file_table.h"

FOLD_ADAPTERS(file_table)

static const struct fold fold = {FOLD_ROW, .needs_trace = true};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return fold_run(cli, &fold, options, args, n_args, err);
}

const struct verb verb_files = {
	.name = "files",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "the files that were read, written, made, moved, deleted or denied",
	.text = "One line for each path, by the place where the file is.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
