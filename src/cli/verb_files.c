/* SPDX-License-Identifier: Apache-2.0 */
/* cloche files: the files that were read, written, made, moved, deleted or denied. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/file_table.h"

static void *view_new(const struct view_filter *filter)
{
	return file_table_new(filter);
}

static void view_free(void *view)
{
	file_table_free(view);
}

static void view_add(void *view, const struct event *ev)
{
	file_table_add(view, ev);
}

static void view_json(void *view, struct str *out)
{
	file_table_json(view, out);
}

static void view_text(void *view, const struct view_style *style, struct str *out)
{
	file_table_text(view, style, out);
}

static const struct fold fold = {
	view_new, view_free, view_add, view_json, view_text, .needs_trace = true};

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
