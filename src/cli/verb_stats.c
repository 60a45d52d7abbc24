/* SPDX-License-Identifier: Apache-2.0 */
/* cloche stats: what a sandbox used over time. */
#include "cli/fold.h"
#include "cli/stream.h"
#include "cli/verb.h"
#include "view/stats_table.h"

FOLD_ADAPTERS(stats_table)

static bool next_json(void *table, const struct stream_line *line, struct str *out)
{
	return stats_table_next_json(table, line->ev, false, out);
}

static bool next_text(void *table, const struct stream_line *line, const struct view_style *style,
	struct str *out)
{
	return stats_table_next_text(table, line->ev, false, style, out);
}

static bool next_json_of_many(void *table, const struct stream_line *line, struct str *out)
{
	return stats_table_next_json(table, line->ev, true, out);
}

static bool next_text_of_many(void *table, const struct stream_line *line,
	const struct view_style *style, struct str *out)
{
	return stats_table_next_text(table, line->ev, true, style, out);
}

static const struct fold whole = {FOLD_ROW};
static const struct stream one = {fold_view_new, fold_view_free, next_json, next_text};
static const struct stream many = {
	fold_view_new, fold_view_free, next_json_of_many, next_text_of_many};

/* A whole table ends with the totals; rows as they come have none. */
static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct source_options *o = options;

	if (o->follow)
		return stream_run(cli, o->labels.n ? &many : &one, o, args, n_args, err);
	return fold_run(cli, &whole, o, args, n_args, err);
}

const struct verb verb_stats = {
	.name = "stats",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "CPU, memory, processes, disk and network over time",
	.text = "A line for each sample, and what was used in all. Samples are taken while "
		"something "
		"runs, and at each command's end; with --follow they are printed as they come. "
		"CPU, "
		"READ, WRITTEN, OUT and IN are totals since the sandbox began.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
