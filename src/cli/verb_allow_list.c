/* SPDX-License-Identifier: Apache-2.0 */
/* cloche allow-list: the rules that a run would have needed. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/allow_list.h"

struct allow_list_options {
	struct source_options source; /* first, for source_options_done() */
	bool paths;
};

static const struct option table[] = {
	{"paths", 0, NULL, "by method and path where HTTP was read, not by host", OPTION_ON,
		offsetof(struct allow_list_options, paths)},
	{NULL},
};

static const struct option_group groups[] = {
	{"Rules", table}, {"Options", source_options_table}, {NULL}};

static void *new_hosts(const struct view_filter *filter)
{
	return allow_list_new(filter, false);
}

static void *new_paths(const struct view_filter *filter)
{
	return allow_list_new(filter, true);
}

static void free_list(void *v)
{
	allow_list_free(v);
}

static void add(void *v, const struct event *ev)
{
	allow_list_add(v, ev);
}

static void add_json(void *v, struct str *out)
{
	allow_list_json(v, out);
}

static void add_text(void *v, const struct view_style *style, struct str *out)
{
	allow_list_text(v, style, out);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct allow_list_options *o = options;
	const struct fold fold = {.new = o->paths ? new_paths : new_hosts,
		.free = free_list,
		.add = add,
		.json = add_json,
		.text = add_text,
		.needs_source = "network"};

	return fold_run(cli, &fold, &o->source, args, n_args, err);
}

const struct verb verb_allow_list = {
	.name = "allow-list",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "the rules to allow that a run would have needed",
	.text = "Each line is a rule for --allow; what was refused stands behind \"# refused: \". "
		"A run "
		"with --shadow shows what it would have needed in full.",
	.groups = groups,
	.options_size = sizeof(struct allow_list_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
