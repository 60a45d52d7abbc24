/* SPDX-License-Identifier: Apache-2.0 */
/* One conversation of the cli with a supervisor that it started or that was there. Whoever started it also
 * holds the host key for it: requests to sign are served whenever the session waits. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <jansson.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "control/client.h"
#include "launcher/hostkey.h"
#include "spec/spec.h"
#include "util/id.h"

struct session {
	const struct cli *cli;
	char id[ID_SIZE];
	struct client *client;
	int seal_fd; /* -1: not ours to sign */
	struct hostkey *key;
	pid_t pid; /* of the supervisor, where it is our child; else 0 */
};

/* Starts a sandbox and waits until it is ready. */
int session_start(
	struct session *session, const struct cli *cli, const struct spec *spec, struct err *err);
/* Goes on with one that rests: see launch_again(). */
int session_start_again(struct session *session, const struct cli *cli, const char *id, int lock_fd,
	const struct spec *spec, struct err *err);
int session_connect(
	struct session *session, const struct cli *cli, const char *id, struct err *err);
void session_done(struct session *session); /* waits for a supervisor that is our child */

/* Waits for the next frame and serves the seal meanwhile: 1, 0 where the supervisor is gone, negative. */
int session_next(struct session *session, struct wire_frame *ret_frame);
/* Signs what waits at seal_fd, which is readable. */
void session_serve_seal(struct session *session);
/* A request and its answer. */
int session_ask(struct session *session, const char *request, struct slice body,
	json_t **ret_answer, struct err *err);
/* Leaves a small process behind that holds the key and signs for the sandbox as long as it lives. */
int session_keep(struct session *session, struct err *err);

#endif
