/* SPDX-License-Identifier: Apache-2.0 */
/* Clones the first process into namespaces of its own and maps its ids. */
#ifndef SANDBOX_NS_H
#define SANDBOX_NS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox/boot.h"
#include "util/err.h"

struct ns {
	pid_t pid;
	int pidfd; /* -1: not there */
	int userns_fd;
	int go[2], report[2]; /* pipes, read and write end, until it is ready */
};

/* Starts boot_run() and maps its ids; it waits for what ns_send() gives it. The boot's go_fd and report_fd are set here. */
int ns_open(struct ns *ns, struct boot *boot, int cgroup_fd, uint32_t base, struct err *err);
/* Hands descriptors over, as enum boot_fd has them; for ids that are mapped and 0, n is 1. */
int ns_send(struct ns *ns, const int *fds, size_t n, struct err *err);
/* Waits until process 1 runs its program. */
int ns_wait(struct ns *ns, int *ret_devpts_fd, struct err *err);
/* Kills it, and with it all in its pid namespace, and reaps it. Waits at most wait_ms. */
void ns_close(struct ns *ns, int wait_ms);

#endif
