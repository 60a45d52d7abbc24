/* SPDX-License-Identifier: Apache-2.0 */
/* What blame finds, change by change, as the lines that it prints. */
#ifndef CLI_BLAME_LINE_H
#define CLI_BLAME_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/blame_acts.h"
#include "cli/blame_record.h"
#include "cli/cli.h"
#include "util/map.h"
#include "util/str.h"
#include "view/blame.h"

struct blame_options {
	bool guest, all;
	int64_t limit;
};

/* A row that is to be printed, whole. */
struct blame_line {
	int64_t at_ms;
	struct str text, json;
	char *folder; /* it stands for n changes in this .git or node_modules; NULL: for one */
	size_t n;
};

struct blame_job {
	const struct cli *cli;
	const struct blame_options *o;
	char *host, *inside; /* one may be NULL */
	struct blame_acts *acts;
	struct blame_line *lines;
	size_t n_lines, room;
	size_t n_read,
		n_unread; /* records that could say something; those that could not be read */
};

/* One record. */
struct blame_part {
	const char *id, *task;
	json_t *meta;
	struct blame_targets targets;
	struct map *folders; /* .git or node_modules to the place of its line, from 1 */
};

/* A row of the trace. */
void blame_line_add_row(
	struct blame_job *job, struct blame_part *part, const struct blame_row *row);
/* An entry of the list of changes at the end, where it is about a path that was asked for. kind: which list. */
void blame_line_add_change(struct blame_job *job, struct blame_part *part, const char *kind,
	const json_t *change, int64_t at_ms);
/* Gives the lines from first on that stand for a folder their text. */
void blame_line_add_folders(struct blame_job *job, const struct blame_part *part, size_t first);

#endif
