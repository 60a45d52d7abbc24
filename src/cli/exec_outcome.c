/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec_outcome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "event/event.h"
#include "util/log.h"
#include "util/path.h"
#include "util/scoped.h"

static int status_of(const json_t *row, struct exec_outcome *outcome)
{
	const json_t *signal = json_object_get(row, "signal");

	outcome->was_signalled = json_is_integer(signal);
	if (outcome->timed_out)
		return 124;
	if (outcome->was_signalled)
		return 128 + (int)json_integer_value(signal);
	return (int)json_integer_value(json_object_get(row, "exit_code"));
}

void exec_outcome_read(const json_t *row, struct exec_outcome *outcome)
{
	const char *result = json_string_value(json_object_get(row, "result"));
	const char *reason = json_string_value(json_object_get(row, "reason"));

	outcome->timed_out = json_is_true(json_object_get(row, "timed_out"));
	outcome->oom_killed = json_is_true(json_object_get(row, "oom_killed"));
	outcome->oom_kills = json_integer_value(json_object_get(row, "oom_kills"));
	outcome->pids_limited = json_is_true(json_object_get(row, "pids_limited"));
	outcome->disk_full = json_is_true(json_object_get(row, "disk_full"));
	outcome->left_running = (int)json_integer_value(json_object_get(row, "left_running"));
	snprintf(outcome->failure, sizeof(outcome->failure), "%s", reason ? reason : "");
	outcome->exec_errno = result ? event_errno_find(slice_of(result)) : 0;
	outcome->exit_status = status_of(row, outcome);
}

/* The host has the file, outside of what is shown inside by itself: the folder that the caller is in. */
static bool is_only_on_host(const char *program)
{
	scoped_mem char *file = strchr(program, '/') ? realpath(program, NULL) : NULL;
	scoped_mem char *cwd = getcwd(NULL, 0);

	return file && !(cwd && path_is_beneath(slice_of(file), slice_of(cwd)));
}

static void explain_missing(const char *program)
{
	static const char interpreter[] = "the interpreter that its first line names";

	if (!cli_is_elsewhere() && is_only_on_host(program))
		log_warn("%s: command not found in the sandbox, though the host has it: put it "
			 "into the current folder, or show its folder with `-m DIR:DIR:ro`; where "
			 "it is shown, what is missing is %s",
			program, interpreter);
	else
		log_warn("%s: command not found in the sandbox%s%s", program,
			strchr(program, '/') ? ", or " : "",
			strchr(program, '/') ? interpreter : "");
}

void exec_outcome_explain(const struct spec_exec *exec, const struct exec_outcome *outcome)
{
	const char *program = exec->command ? "/bin/sh" : exec->argv.items[0];

	if (outcome->failure[0])
		log_warn("%s: not run: %s", program, outcome->failure);
	else if (outcome->exec_errno == ENOENT)
		explain_missing(program);
	else if (outcome->exec_errno)
		log_warn("%s: cannot be executed: %s", program, strerror(outcome->exec_errno));
	if (outcome->timed_out)
		log_warn("the command ran into its --timeout and was killed with all that it "
			 "started");
	if (outcome->oom_killed)
		log_warn("the command was killed: the sandbox's memory limit (--memory) was "
			 "reached");
	else if (outcome->oom_kills > 0)
		log_warn("the sandbox's memory limit (--memory) was reached: %lld of its processes "
			 "%s killed",
			(long long)outcome->oom_kills, outcome->oom_kills == 1 ? "was" : "were");
	if (outcome->pids_limited)
		log_warn("the sandbox's limit on processes (--pids) was reached: some could not "
			 "be started");
	if (outcome->disk_full)
		log_warn("the sandbox's disk limit (--disk) was reached: some writes failed");
}
