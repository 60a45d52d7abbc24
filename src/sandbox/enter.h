/* SPDX-License-Identifier: Apache-2.0 */
/* Brings one program into a sandbox: the half of an exec that runs beside the supervisor, in its memory.
 *
 * A helper thread of the supervisor enters the sandbox's namespaces, all but the user namespace, which no thread
 * may, and clones the child with CLONE_VM|CLONE_VFORK. So the child is born inside: what /proc tells there of
 * anybody's mounts and sockets is never the host's, and nobody inside can signal it before it is one of them. Only the helper waits for that child, so neither a frozen cgroup nor root inside that
 * stops the child holds the supervisor up. CLONE_VFORK is what keeps the kernel's out-of-memory killer off the
 * child, whose memory is the supervisor's: killing one would kill both.
 *
 * Both run raw system calls on stacks of their own, with every signal blocked. */
#ifndef SANDBOX_ENTER_H
#define SANDBOX_ENTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/* The step at which it failed, for the sentence. */
enum enter_step {
	ENTER_LIMITS,
	ENTER_NAMESPACES,
	ENTER_TERMINAL,
	ENTER_DESCRIPTORS,
	ENTER_USER,
	ENTER_CWD,
	ENTER_RIGHTS,
	ENTER_EXECVE,
};

/* What the child writes to status_fd when it fails: after it nothing comes but the end. */
struct enter_status {
	int errnum;
	int step;
};

#define ENTER_MAX_JOINS  3
#define ENTER_STACK_SIZE (16u * 1024) /* of helper and child each */

/* Everything in here stays where it is until the child has left this memory and the helper has ended. */
struct enter {
	int init_pidfd, cgroup_fd, status_fd;
	int join_fds[ENTER_MAX_JOINS]; /* cgroup.procs of version 1 groups, -1 for none */
	int fds[3];
	bool has_terminal; /* fds[0] becomes the controlling one */
	uint32_t uid, gid;
	const uint32_t *groups;
	unsigned n_groups;
	const char *cwd;
	int program_fd;              /* what runs; -1: what programs name */
	const char *const *programs; /* tried in this order, ends with NULL */
	char *const *argv, *const *env;
	struct sock_fprog filter;
	uint64_t ignored_signals; /* bit N-1 for signal N */
	void *child_stack_top;

	int started;    /* futex: 1 when the child runs or the clone failed */
	int pid, pidfd; /* set by the kernel before the child runs; pid 0 until then */
	int clone_r;    /* negative errno of a failed clone */
	int helper;     /* thread id, 0 once it has ended */
};

/* Starts the helper on that stack. 0 or a negative errno; signals are blocked by the caller meanwhile. */
int enter_start(struct enter *enter, void *helper_stack_top);
/* Waits until the pid is known or the clone has failed, at most for max_ms. -ETIMEDOUT. */
int enter_wait_pid(struct enter *enter, int max_ms);
/* Waits for the helper's end; only once the child has executed or ended, so that it is a matter of moments. */
void enter_wait_helper(struct enter *enter);

#endif
