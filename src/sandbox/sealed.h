/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of ours that run inside, from memory that nobody can change. */
#ifndef SANDBOX_SEALED_H
#define SANDBOX_SEALED_H

#include <sys/types.h>

#include "util/err.h"

/* A sealed copy of a program, to be executed by its descriptor (the caller's): /proc/PID/exe inside leads to nothing of the
 * host's. With a mode that lets nobody read it, the kernel lets nobody inside look into the process either (ptrace(2), "not
 * dumpable"): not at its memory, not at its descriptors. */
int sealed_load(int program_fd, const char *name, mode_t mode, struct err *err);

#endif
