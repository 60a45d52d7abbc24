/* SPDX-License-Identifier: Apache-2.0 */
/* Ties this process's terminal or pipes to an exec until it ends: bytes both ways, window size, signals. */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include "cli/session.h"
#include "spec/spec.h"

struct attach_outcome {
	int exit_status; /* as this process should exit: the command's, 128+signal, 124 on timeout */
	bool timed_out, oom_killed, pids_limited, disk_full, was_signalled;
	int exec_errno;    /* the command could not be executed: ENOENT and the like */
	char failure[256]; /* the words, where something before the command failed; else "" */
	int left_running;
	int64_t oom_kills; /* processes that the memory limit killed meanwhile */
	char exec_id[ID_SIZE];
};

/* Starts the exec and stays with it. */
int attach_exec(struct session *session, const struct spec_exec *exec,
	struct attach_outcome *ret_outcome, struct err *err);
/* Says on stderr why, where the exit status alone does not: not found, timed out, out of memory. */
void attach_explain(const struct spec_exec *exec, const struct attach_outcome *outcome);
/* Window size of the terminal on fd, 24x80 where it has none. */
void attach_window(int fd, unsigned short *ret_rows, unsigned short *ret_columns);

#endif
