/* SPDX-License-Identifier: Apache-2.0 */
/* A filter of system calls (seccomp(2)) made from a table: for programs of ours that read foreign bytes. */
#ifndef UTIL_CALLFILTER_H
#define UTIL_CALLFILTER_H

#include <stddef.h>
#include <stdint.h>

/* Where low, the low half of an argument under mask, is one of the values, the call is allowed; else EPERM. */
struct callfilter_narrow {
	int call;
	unsigned argument;
	uint32_t mask;
	uint32_t values[4];
	size_t n;
};

struct callfilter {
	const int *allowed;
	size_t n_allowed;
	const struct callfilter_narrow *narrowed;
	size_t n_narrowed;
};

/* For all threads, for good. What is in neither table fails with ENOSYS: a library that probes goes on; another gate
 * than the 64-bit one ends the process. Without rights, no_new_privs must be set before. */
int callfilter_set(const struct callfilter *filter);

#endif
