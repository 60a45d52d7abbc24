/* SPDX-License-Identifier: Apache-2.0 */
/* cloche watch: a sandbox at work. */
#include "cli/stream.h"
#include "cli/verb.h"

struct watch_options {
	struct source_options source; /* first, for source_options_done() */
	bool events;
};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct watch_options *o = options;

	o->source.follow = true;
	return stream_run(cli, o->events ? &verb_events_stream : &verb_log_rows, &o->source, args,
		n_args, err);
}

static const struct option table[] = {
	{"events", 0, NULL, "every event, as `cloche events --follow`", OPTION_ON,
		offsetof(struct watch_options, events)},
	{NULL},
};
static const struct option_group groups[] = {
	{"Watch", table}, {"Options", source_options_table}, {NULL}};

const struct verb verb_watch = {
	.name = "watch",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "a sandbox at work: a row for each exec that ends, or every event, as they come",
	.text = "From the beginning of its record on, until it ends.",
	.groups = groups,
	.options_size = sizeof(struct watch_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
