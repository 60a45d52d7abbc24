/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that ask a command to end, and of a terminal's new size: read by whoever waits for the command. */
#ifndef CLI_EXEC_SIGNALS_H
#define CLI_EXEC_SIGNALS_H

#include <signal.h>

/* Blocks them, and ignores SIGPIPE; a signalfd, the caller's. *ret_before is for sigprocmask() in the end. */
int exec_signals_open(sigset_t *ret_before);

#endif
