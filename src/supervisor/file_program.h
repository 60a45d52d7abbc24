/* SPDX-License-Identifier: Apache-2.0 */
/* The program that works on the sandbox's files from inside (src/files). */
#ifndef SUPERVISOR_FILE_PROGRAM_H
#define SUPERVISOR_FILE_PROGRAM_H

#include "util/err.h"

/* A copy in memory that nobody inside can read, change or look into while it runs: a descriptor, the caller's. It is made
 * for each operation, so that an idle sandbox holds none. */
int file_program_open(struct err *err);

#endif
