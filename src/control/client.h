/* SPDX-License-Identifier: Apache-2.0 */
/* A program's side of a control socket: blocking, one request at a time. */
#ifndef CONTROL_CLIENT_H
#define CONTROL_CLIENT_H

#include <jansson.h>

#include "control/wire.h"
#include "util/err.h"
#include "util/scoped.h"

struct client;

/* The socket of a living sandbox. -ENOENT or -ECONNREFUSED, with a sentence, where none lives. */
int client_connect(
	const char *state_dir, const char *id, struct client **ret_client, struct err *err);
struct client *client_adopt(int sock); /* takes the socket over */
void client_free(struct client *client);
SCOPED_TYPE(client)

int client_fd(const struct client *client); /* borrowed, for poll() */

int client_send(struct client *client, enum wire_type type, struct slice payload);
/* The next frame, good until the next call: 1; 0 where the other side is gone; negative. */
int client_receive(struct client *client, struct wire_frame *ret_frame);
/* As client_receive() without waiting: -EAGAIN where no whole frame is there. */
int client_poll(struct client *client, struct wire_frame *ret_frame);

/* Sends {"request": name, ...} and waits for its answer, which must be ok; other frames before it are dropped.
 * body: the members behind "request", a JSON object or empty. *ret_answer (may be NULL) is the caller's. */
int client_ask(struct client *client, const char *request, struct slice body, json_t **ret_answer,
	struct err *err);
/* The same where a descriptor comes with the answer: *ret_fd, the caller's. -EBADMSG where none did. On a new connection. */
int client_ask_fd(struct client *client, const char *request, struct slice body, int *ret_fd,
	struct err *err);
/* Reads an answer: 0, or its errno and sentence. */
int client_check(const json_t *answer, struct err *err);
/* {"request":name,...body} as text. */
void client_request(struct str *out, const char *request, struct slice body);

/* Path of a sandbox's control socket, in a form that fits a socket address however long the state's is. */
int client_socket_path(const char *state_dir, const char *id, struct str *out);

#endif
