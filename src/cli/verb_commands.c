/* SPDX-License-Identifier: Apache-2.0 */
/* cloche commands: what was asked for, and what an agent ran in it. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/command_list.h"

static void *view_new(const struct view_filter *filter)
{
	return command_list_new(filter);
}

static void view_free(void *view)
{
	command_list_free(view);
}

static void view_add(void *view, const struct event *ev)
{
	command_list_add(view, ev);
}

static void view_json(void *view, struct str *out)
{
	command_list_json(view, out);
}

static void view_text(void *view, const struct view_style *style, struct str *out)
{
	command_list_text(view, style, out);
}

static const struct fold fold = {view_new, view_free, view_add, view_json, view_text};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return fold_run(cli, &fold, options, args, n_args, err);
}

const struct verb verb_commands = {
	.name = "commands",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "what was asked for, and what an agent ran in it, with results and outputs",
	.text = "An agent's own commands are found in the process tree, its wrappers folded away.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
