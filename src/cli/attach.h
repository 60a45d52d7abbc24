/* SPDX-License-Identifier: Apache-2.0 */
/* Ties this process's terminal or pipes to an exec until it ends: bytes both ways, window size, signals. */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include "cli/exec_outcome.h"
#include "cli/session.h"
#include "spec/spec.h"

/* Starts the exec and stays with it. */
int attach_exec(struct session *session, const struct spec_exec *exec,
	struct exec_outcome *ret_outcome, struct err *err);
/* Window size of the terminal on fd, 24x80 where it has none. */
void attach_window(int fd, unsigned short *ret_rows, unsigned short *ret_columns);

#endif
