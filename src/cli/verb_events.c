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

static bool is_shown(const struct stream_line *line)
{
	return view_filter_takes(line->filter, line->ev) &&
	       (line->filter->noise || !is_noise(line->ev));
}

static bool add_json(void *state, const struct stream_line *line, struct str *out)
{
	if (!is_shown(line))
		return false;
	str_add(out, line->json.p, line->json.len);
	return true;
}

static bool add_text(void *state, const struct stream_line *line, const struct view_style *style,
	struct str *out)
{
	if (!is_shown(line))
		return false;
	event_line_add(out, line->ev, style);
	return true;
}

const struct stream verb_events_stream = {.json = add_json, .text = add_text};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return stream_run(cli, &verb_events_stream, options, args, n_args, err);
}

const struct verb verb_events = {
	.name = "events",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "every single event, in the order of the record",
	.text = "With --jsonl the lines as they are kept; docs/events.md says what each kind "
		"carries. With "
		"--follow they come while the command runs.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
