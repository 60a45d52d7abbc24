/* SPDX-License-Identifier: Apache-2.0 */
/* cloche show: the summary of a run, again. */
#include <errno.h>

#include "cli/elsewhere.h"
#include "cli/source.h"
#include "cli/summary_source.h"
#include "cli/verb.h"

struct show_options {
	bool markdown;
	struct source_options source; /* only its labels have a name here */
};

static int add_one(const struct cli *cli, const struct show_options *o, const char *id,
	const char *ref, struct str *out, struct err *err)
{
	scoped(summary_source) struct summary_source *source = NULL;
	enum summary_form form = cli->json || cli->jsonl ? SUMMARY_FORM_JSON
	                         : o->markdown           ? SUMMARY_FORM_MARKDOWN
	                                                 : SUMMARY_FORM_TEXT;
	int r;

	if (cli->elsewhere)
		return cli->elsewhere->summary(cli, id, form, cli_has_color(cli, 1), out, err);
	r = summary_source_open(cli, id, ref, &source, err);
	if (r == 0)
		summary_source_write(source, form, cli_has_color(cli, 1), out);
	return r;
}

/* Several: a list with --json, else one after another. */
static int add_all(const struct cli *cli, const struct show_options *o,
	const struct source_ids *ids, const char *ref, struct str *out, struct err *err)
{
	bool is_list = cli->json && ids->n > 1;

	for (size_t i = 0; i < ids->n; i++) {
		int r;

		if (is_list)
			str_puts(out, i ? ",\n" : "[");
		else if (i && !cli->jsonl)
			str_putc(out, '\n');
		r = add_one(cli, o, ids->items[i], ref ? ref : ids->items[i], out, err);
		if (r < 0)
			return r;
	}
	if (is_list)
		str_puts(out, "]\n");
	return 0;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct show_options *o = options;
	const char *ref = n_args ? args[0] : NULL;
	scoped_str struct str out = {0};
	struct source_ids ids;
	int r = source_find(cli, &o->source, args, n_args, &ids, err);

	if (r == 0)
		r = add_all(cli, o, &ids, ref, &out, err);
	source_ids_done(&ids);
	return r < 0 ? r : cli_print(&out, err);
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	struct show_options *o = options;

	return source_options_check(&o->source, args, n_args, err);
}

static void done(void *options)
{
	struct show_options *o = options;

	source_options_done(&o->source);
}

static int add_label(void *base, const char *value, struct err *err)
{
	struct show_options *o = base;

	return source_options_add_label(&o->source, value, err);
}

static const struct option table[] = {
	{"markdown", 0, NULL, "as Markdown, to be attached to a pull request", OPTION_ON,
		offsetof(struct show_options, markdown)},
	{"label", 0, "K=V", "all sandboxes with this label, instead of an ID; may be given again",
		OPTION_CALL, .set = add_label},
	{NULL},
};
static const struct option_group groups[] = {{"Options", table}, {NULL}};

const struct verb verb_show = {
	.name = "show",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "the summary: what was refused, done, and how much of it was seen",
	.text = "With --json every number and list in full.",
	.groups = groups,
	.options_size = sizeof(struct show_options),
	.done = done,
	.max_args = 1,
	.check = check,
	.run = run,
};
