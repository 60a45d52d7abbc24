/* SPDX-License-Identifier: Apache-2.0 */
/* cloche events: the record itself, an event a line. */
#include <errno.h>

#include "cli/event_line.h"
#include "cli/stream.h"
#include "cli/verb.h"

/* Here an event stands alone: an open of the kernel's files, and a library opened to be read. */
static bool is_noise(const struct event *ev)
{
	bool is_denied = event_has(ev, result) && (ev->result == EACCES || ev->result == EPERM);

	if (ev->kind != EVENT_FILE_OPEN || !event_has(ev, path) || is_denied)
		return false;
	if (view_filter_is_kernel_path(ev->path))
		return true;
	return view_filter_is_library(ev->path) && !ev->created && slice_is(ev->access, "read");
}

static bool takes(const struct stream_line *line)
{
	return line->filter->noise || !is_noise(line->ev);
}

static void add_json(const struct stream_line *line, struct str *out)
{
	str_add(out, line->json.p, line->json.len);
}

static void add_text(
	const struct stream_line *line, const struct view_style *style, struct str *out)
{
	event_line_add(out, line->ev, line->sandbox, style);
}

static const struct stream stream = {takes, add_json, add_text, NULL};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return stream_run(cli, &stream, options, args, n_args, err);
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	return source_options_check(options, n_args, err);
}

static void done(void *options)
{
	source_options_done(options);
}

static const struct option_group groups[] = {{"Options", source_options_table}, {NULL}};

const struct verb verb_events = {
	.name = "events",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "every single event, in the order of the record",
	.text = "With --jsonl the lines as they are kept; docs/events.md says what each kind "
		"carries. With "
		"--follow they come while the command runs.",
	.groups = groups,
	.options_size = sizeof(struct source_options),
	.done = done,
	.max_args = 1,
	.check = check,
	.run = run,
};
