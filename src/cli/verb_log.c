/* SPDX-License-Identifier: Apache-2.0 */
/* cloche log: the rows of the exec log. */
#include "cli/fold.h"
#include "cli/stream.h"
#include "cli/verb.h"
#include "view/exec_log.h"

static void *log_new(const struct view_filter *filter)
{
	return exec_log_new(filter);
}

static void log_free(void *log)
{
	exec_log_free(log);
}

static void log_add(void *log, const struct event *ev)
{
	exec_log_add(log, ev);
}

static void log_json(void *log, struct str *out)
{
	exec_log_json(log, out);
}

static void log_text(void *log, const struct view_style *style, struct str *out)
{
	exec_log_text(log, style, out);
}

static bool next_json(void *log, const struct stream_line *line, struct str *out)
{
	return exec_log_next_json(log, line->ev, out);
}

static bool next_text(
	void *log, const struct stream_line *line, const struct view_style *style, struct str *out)
{
	return exec_log_next_text(log, line->ev, style, out);
}

static const struct fold whole = {log_new, log_free, log_add, log_json, log_text};
const struct stream verb_log_rows = {log_new, log_free, next_json, next_text};

/* A whole log has a heading and ends with what still runs; rows as they come, or for programs, have not. */
static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct source_options *o = options;

	if (o->follow || o->labels.n || cli->json || cli->jsonl)
		return stream_run(cli, &verb_log_rows, o, args, n_args, err);
	return fold_run(cli, &whole, o, args, n_args, err);
}

const struct verb verb_log = {
	.name = "log",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "the exec log: a row for each exec, with results; outputs with --json",
	.text = "With --jsonl a row a line, in order of ending; with --follow as they end.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
