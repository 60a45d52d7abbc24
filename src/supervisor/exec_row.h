/* SPDX-License-Identifier: Apache-2.0 */
/* The two lines of an exec in the log: exec.start before it runs, exec.end with everything before its result
 * is given out. */
#ifndef SUPERVISOR_EXEC_ROW_H
#define SUPERVISOR_EXEC_ROW_H

#include "supervisor/exec_stream.h"
#include "supervisor/supervisor_internal.h"

struct exec_row {
	int64_t id;
	const char *exec_id;
	const struct spec_exec *spec;
	int64_t started_ns, started_wall_ms, ended_ns;
	struct sandbox_exit exit;
	int exec_errno; /* of an execve that failed, or of what comes before it, else 0: exit code 127 or 126 */
	char *failure; /* the words, where it did not come to the execve */
	bool timed_out, interrupted, slice_complete;
	struct cgroup_limited limited; /* what the sandbox's limits did meanwhile */
	bool disk_full;                /* it held meanwhile all that its disk limit lets it */
	struct gauge_group used;
	int n_left;                        /* processes still running */
	const struct exec_stream *streams; /* two; the second unused with a terminal. NULL: none */
};

void exec_row_start(struct supervisor *sup, const struct exec_row *row);
void exec_row_end(struct supervisor *sup, const struct exec_row *row);
/* Of an operation on files: whether it came to an end that it tells of itself. */
bool exec_row_is_whole(const struct exec_row *row);
/* Instead of the end of one that did not: sandbox.error. */
void exec_row_fail(struct supervisor *sup, const struct exec_row *row);
/* {"exec":id,"row":{exit_code,signal,...}}: what the client is told. */
void exec_row_answer(const struct exec_row *row, struct str *out);

#endif
