/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls the sandbox may make: an allow list, as a classic BPF program (seccomp(2)).
 *
 * The program is made here from a table, in microseconds, as a binary search over ranges of call numbers:
 * what libseccomp makes of the same list takes milliseconds to compile and several times the instructions,
 * and the kernel translates it anew for each exec. */
#ifndef SANDBOX_SECCOMP_H
#define SANDBOX_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>

#define SECCOMP_MAX_LEN 1024

struct seccomp_program {
	struct sock_filter code[SECCOMP_MAX_LEN];
	struct sock_fprog prog; /* points at code: do not copy the struct */
};

/* no_set_id: also refuse every way to give a file its set-user-id or set-group-id bit. For sandboxes with a
 * mount that is written through to the host: a filter sees no paths, and a mount cannot refuse the bit, so
 * it is refused in the whole sandbox. */
void seccomp_build(struct seccomp_program *program, bool no_set_id);

#endif
