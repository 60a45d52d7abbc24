/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that print a record line by line as it comes: events, log. Of several sandboxes each
 * line of text begins with the one it is from. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "cli/source.h"
#include "util/str.h"
#include "view/view_text.h"

struct stream_line {
	const struct event *ev;
	struct slice json; /* as it stands in the journal */
	const struct view_filter *filter;
};

/* json and text say whether there was something to print; text adds whole lines. */
struct stream {
	void *(*new)(const struct view_filter *filter); /* a state for each record; NULL: none */
	void (*free)(void *state);
	bool (*json)(void *state, const struct stream_line *line,
		struct str *out); /* one object, no line end */
	bool (*text)(void *state, const struct stream_line *line, const struct view_style *style,
		struct str *out);
};

/* What log and events print as it comes; watch does, too. */
extern const struct stream verb_log_rows, verb_events_stream;

int stream_run(const struct cli *cli, const struct stream *stream, const struct source_options *o,
	char **args, size_t n_args, struct err *err);

#endif
