/* SPDX-License-Identifier: Apache-2.0 */
/* What a record's events say of who changed which path: for cloche changes. One pass over the record. */
#ifndef CLI_CHANGES_TRACE_H
#define CLI_CHANGES_TRACE_H

#include "cli/cli.h"
#include "util/scoped.h"
#include "view/command_list.h"
#include "view/file_table.h"
#include "view/file_touched.h"

/* Part of a run. */
struct changes_part {
	const char *execs; /* "EX,EX": ids or their beginnings; NULL: all */
	const char *since, *until;
	bool no_who; /* who made which change is not asked for: only what was touched is read */
};

/* What the part did to a path. */
#define CHANGES_WRITTEN 1u
#define CHANGES_CREATED 2u
#define CHANGES_DELETED 4u
#define CHANGES_MOVED   8u
#define CHANGES_RIGHTS  16u

/* In order of happening; 0: never. */
struct changes_mark {
	uint64_t first_in, last_in;   /* by the part that was asked for */
	uint64_t first_out, last_out; /* by the rest of the run */
	uint64_t made;                /* the last time that it was made there, by whomever */
	unsigned did;                 /* CHANGES_*, by the part */
	bool below;                   /* it moved: what lies in it, too, where it is a folder */
	struct changes_program {
		uint64_t seq; /* of its start */
		uint64_t at;  /* when it first changed it */
	} * programs;
	size_t n_programs;
};

struct changes_trace;

int changes_trace_read(const struct cli *cli, const char *id, const struct changes_part *part,
	struct changes_trace **ret_trace, struct err *err);
void changes_trace_free(struct changes_trace *trace);
SCOPED_TYPE(changes_trace)

bool changes_trace_has_files(const struct changes_trace *trace); /* they were watched */
bool changes_trace_is_part(const struct changes_trace *trace); /* not the whole run was asked for */
const struct file_touched *changes_trace_touched(const struct changes_trace *trace);
/* Who wrote a path, also what was moved there; NULL where nobody was seen to. */
const struct file_entry *changes_trace_find(const struct changes_trace *trace, struct slice path);
const struct slice *changes_trace_execs(const struct changes_trace *trace);
/* The name that a path had before, as changes_names_back(), until it was made. */
bool changes_trace_back(const struct changes_trace *trace, struct str *path, uint64_t *until);
/* All marks of a path and of folders above it that moved, as one. did is 0 where the part did nothing. */
struct changes_mark changes_trace_mark(const struct changes_trace *trace, struct slice path);
/* Walks the paths that were changed: for (i = 0; changes_trace_next(trace, &i, &path, &mark);). */
bool changes_trace_next(const struct changes_trace *trace, size_t *i, struct slice *ret_path,
	const struct changes_mark **ret_mark);
/* A program by the seq of its start, and the command it ran for; NULL where that is not known. */
const struct process_node *changes_trace_program(const struct changes_trace *trace, uint64_t seq);
const struct command *changes_trace_command(
	const struct changes_trace *trace, const struct process_node *program);

#endif
