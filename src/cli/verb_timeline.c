/* SPDX-License-Identifier: Apache-2.0 */
/* cloche timeline: what happened, in one order. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/timeline.h"

FOLD_ADAPTERS(timeline)

static const struct fold fold = {FOLD_ROW, .is_timeline = true};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return fold_run(cli, &fold, options, args, n_args, err);
}

const struct verb verb_timeline = {
	.name = "timeline",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "commands, changes, hosts, refusals and gaps in one order",
	.text = "What repeats in one exec is one line at its first time, with a count.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
