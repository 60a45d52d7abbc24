/* SPDX-License-Identifier: Apache-2.0 */
/* cloche show: the summary of a record again. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/records.h"
#include "cli/summary_source.h"
#include "cli/verb.h"

struct show_options {
	bool markdown;
};

static const struct option table[] = {
	{"markdown", 0, NULL, "as Markdown, for a pull request", OPTION_ON,
		offsetof(struct show_options, markdown)},
	{NULL},
};
static const struct option_group groups[] = {{"Show", table}, {NULL}};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct show_options *o = options;
	scoped(summary_source) struct summary_source *source = NULL;
	scoped_str struct str text = {0};
	enum summary_form form = cli->json || cli->jsonl ? SUMMARY_FORM_JSON
	                         : o->markdown           ? SUMMARY_FORM_MARKDOWN
	                                                 : SUMMARY_FORM_TEXT;
	char id[ID_SIZE];
	int r = records_resolve(cli, args[0], id, err);

	if (r == 0)
		r = summary_source_open(cli, id, args[0], &source, err);
	if (r < 0)
		return r;
	summary_source_write(source, form, cli_has_color(cli, STDOUT_FILENO), &text);
	if (fwrite(text.p, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
		return err_set(err, -errno, "write: %m");
	return 0;
}

const struct verb verb_show = {
	.name = "show",
	.class = VERB_VIEW,
	.usage = "ID",
	.help = "the summary: what was refused, done and seen, on one screen",
	.groups = groups,
	.options_size = sizeof(struct show_options),
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
