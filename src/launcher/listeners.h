/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that a control plane listens on, opened by root and handed over: its other half may open none. */
#ifndef LAUNCHER_LISTENERS_H
#define LAUNCHER_LISTENERS_H

#include <stdbool.h>

#include "util/err.h"

/* "127.0.0.1:7410", "[::1]:7410": numeric. A listening socket; -EINVAL, -EADDRINUSE and the like with a sentence. */
int listeners_open_tcp(const char *place, struct err *err);
/* A Unix socket for root and the group "cloche", where the host has one. One that nobody listens on any more is replaced. */
int listeners_open_unix(const char *path, struct err *err);

/* One that a service manager opened: whether it is a Unix socket. -EINVAL where it does not listen for streams over TCP or
 * as a Unix socket; name is for the sentence. */
int listeners_check_passed(int fd, const char *name, bool *ret_is_unix, struct err *err);

#endif
