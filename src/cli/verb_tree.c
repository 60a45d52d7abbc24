/* SPDX-License-Identifier: Apache-2.0 */
/* cloche tree: the programs that ran, and which started which. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/process_tree.h"

static void *view_new(const struct view_filter *filter)
{
	return process_tree_new(filter);
}

static void view_free(void *view)
{
	process_tree_free(view);
}

static void view_add(void *view, const struct event *ev)
{
	process_tree_add(view, ev);
}

static void view_json(void *view, struct str *out)
{
	process_tree_json(view, out);
}

static void view_text(void *view, const struct view_style *style, struct str *out)
{
	process_tree_text(view, style, out);
}

static const struct fold fold = {
	view_new, view_free, view_add, view_json, view_text, .needs_trace = true};

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
