/* SPDX-License-Identifier: Apache-2.0 */
/* How an exec ended, as its row in the exec log says it. */
#ifndef CLI_EXEC_OUTCOME_H
#define CLI_EXEC_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "spec/spec.h"
#include "util/id.h"

struct exec_outcome {
	int exit_status; /* as this process should exit: the command's, 128+signal, 124 on timeout */
	bool timed_out, oom_killed, pids_limited, disk_full, was_signalled;
	int exec_errno;    /* the command could not be executed: ENOENT and the like */
	char failure[256]; /* the words, where something before the command failed; else "" */
	int left_running;
	int64_t oom_kills; /* processes that the memory limit killed meanwhile */
	char exec_id[ID_SIZE];
};

/* exec_id stays as it is. */
void exec_outcome_read(const json_t *row, struct exec_outcome *outcome);
/* Says on stderr why, where the exit status alone does not: not found, timed out, out of memory. */
void exec_outcome_explain(const struct spec_exec *exec, const struct exec_outcome *outcome);

#endif
