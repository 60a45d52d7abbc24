/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec_signals.h"

#include <stddef.h>
#include <sys/signalfd.h>

int exec_signals_open(sigset_t *ret_before)
{
	static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sigaddset(&set, wanted[i]);
	sigprocmask(SIG_BLOCK, &set, ret_before);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
