/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that print a record line by line as it comes: events, log. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "cli/source.h"
#include "util/str.h"
#include "view/view_text.h"

struct stream_line {
	const struct event *ev;
	struct slice json;   /* as it stands in the journal */
	const char *sandbox; /* NULL where there is only one */
	const struct view_filter *filter;
};

struct stream {
	bool (*takes)(const struct stream_line *line);
	void (*json)(const struct stream_line *line, struct str *out); /* one object, no line end */
	void (*text)(
		const struct stream_line *line, const struct view_style *style, struct str *out);
	const char *heading; /* of the text, or NULL */
};

int stream_run(const struct cli *cli, const struct stream *stream, const struct source_options *o,
	char **args, size_t n_args, struct err *err);

#endif
