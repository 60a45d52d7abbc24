/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REMOTE_REMOTE_EXEC_H
#define REMOTE_REMOTE_EXEC_H

#include "cli/exec_options.h"
#include "cli/exec_outcome.h"
#include "cli/verb.h"

/* 0, or CLI_USAGE for what a server cannot do, which is said. */
int remote_exec_check(const struct verb *verb, const struct exec_options *o);
/* Runs what the options say, argv in full; see exec_follow(). With detach its id is all that is known then. */
int remote_exec_run(const struct cli *cli, const char *sandbox, const struct spec_exec *exec,
	struct exec_outcome *ret_outcome, struct err *err);

#endif
