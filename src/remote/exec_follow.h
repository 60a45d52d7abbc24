/* SPDX-License-Identifier: Apache-2.0 */
/* Has a control plane run a command and stays with it: its output as it comes, signals, and its end.
 *
 * It is started once. A connection that is lost before the command's id has come is made again with the same
 * Idempotency-Key, which gives its row in the end; one that is lost later is not: the row is asked for until it is there. */
#ifndef REMOTE_EXEC_FOLLOW_H
#define REMOTE_EXEC_FOLLOW_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/exec_outcome.h"

/* body: of POST .../exec. has_stdin: standard input goes to the command. What has to be told beside its output was told. */
int exec_follow(const struct cli *cli, const char *sandbox, json_t *body, bool has_stdin,
	struct exec_outcome *ret_outcome, struct err *err);

#endif
