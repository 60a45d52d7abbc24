/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 inside a sandbox: a static program without libc that lets the kernel reap what is left to it,
 * and waits. It holds no capability and no descriptor of anybody. */
#include <asm/unistd.h>

#include "sandbox/rawcall.h"

#define SIGCHLD_NR 17
#define IGNORE     ((void *)1)

struct action {
	void *handler;
	unsigned long flags;
	void *restorer;
	unsigned long mask;
};

void _start(void);

__attribute__((noreturn)) void _start(void)
{
	struct action reap = {.handler = IGNORE};

	(void)rawcall(__NR_rt_sigaction, SIGCHLD_NR, &reap, 0, sizeof(reap.mask));
	for (;;)
		(void)rawcall(__NR_pause);
}
