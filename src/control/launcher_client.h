/* SPDX-License-Identifier: Apache-2.0 */
/* How the control plane's unprivileged half asks the launcher, which is root: one message on a Unix socket
 * (SOCK_SEQPACKET), a JSON object with "request", and with it a socket of its own for the answer, so that any number may be
 * under way at once. The launcher's table of requests, each with its check, is launcher_requests.c. */
#ifndef CONTROL_LAUNCHER_CLIENT_H
#define CONTROL_LAUNCHER_CLIENT_H

#include <jansson.h>

#include "util/err.h"
#include "util/slice.h"

#define LAUNCHER_MESSAGE_MAX \
	(192u << 10) /* of a request or an answer; what is longer goes through a descriptor */

struct launcher_ask {
	const char *request;
	struct slice body; /* the members behind "request": a JSON object or empty */
	int pass_fd;       /* handed over with it; -1: none */
	int timeout_ms;
};

/* Blocks until the answer is there. 0 and *ret_answer (the caller's; may be NULL); *ret_fd is the descriptor that came with
 * it or -1 (may be NULL). Else what the launcher said: its errno and its sentence; -ECONNRESET where it has gone, -ETIMEDOUT. */
int launcher_client_ask(int sock, const struct launcher_ask *ask, json_t **ret_answer, int *ret_fd,
	struct err *err);

#endif
