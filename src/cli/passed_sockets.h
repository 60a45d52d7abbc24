/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that a service manager opened and passes to the program that it starts, by its protocol (sd_listen_fds(3)):
 * LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES, and descriptors from 3 on. */
#ifndef CLI_PASSED_SOCKETS_H
#define CLI_PASSED_SOCKETS_H

#include <stddef.h>

#include "util/err.h"

#define PASSED_SOCKETS_MAX 7

struct passed_sockets {
	int fds[PASSED_SOCKETS_MAX]; /* moved up, closed by exec */
	char *names[PASSED_SOCKETS_MAX];
	size_t n;
};

/* Takes them, and the variables out of the environment. None where they are another process's. -EINVAL, -E2BIG with a
 * sentence. */
int passed_sockets_take(struct passed_sockets *passed, struct err *err);
/* To these numbers: first and behind it. Right before exec. */
int passed_sockets_place(const struct passed_sockets *passed, int first, struct err *err);
void passed_sockets_done(struct passed_sockets *passed);

#endif
