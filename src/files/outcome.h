/* SPDX-License-Identifier: Apache-2.0 */
/* How the program ends, and what it says: proto/files_wire.h. Whatever goes wrong ends it at once. */
#ifndef FILES_OUTCOME_H
#define FILES_OUTCOME_H

#include "proto/files_wire.h"

/* With a sentence for people. */
void outcome_fail(enum files_wire_exit code, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/* What the kernel said about that path, beginning with what was tried: "read". */
void outcome_fail_errno(int errnum, const char *what, const char *path) __attribute__((noreturn));

void outcome_write(const void *p, size_t len); /* of the answer */
/* Tells of the place that was used, before the answer or behind it. */
void outcome_used(const char *path);

/* From now on no operation takes longer. */
void outcome_set_deadline(int seconds);

#endif
