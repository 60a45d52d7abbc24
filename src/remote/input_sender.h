/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input on its way to a command at a control plane: read only as fast as the command takes it, and each piece sent
 * once, over whatever connections are lost meanwhile. */
#ifndef REMOTE_INPUT_SENDER_H
#define REMOTE_INPUT_SENDER_H

#include "remote/request.h"

struct input_sender {
	char *path;               /* NULL: not begun */
	struct str piece;         /* a request's body, that is not taken yet */
	struct transfer *sending; /* NULL: none */
	char once[REQUEST_ONCE_SIZE];
	bool is_last, is_over;
	int64_t again_ms; /* of the monotonic clock: when to send it again */
};

/* Whether there may be any: what is at its end already needs no request. Waits for nothing. */
bool input_sender_has_any(struct input_sender *sender);
/* The command has been started. */
void input_sender_begin(struct input_sender *sender, const char *sandbox, const char *exec);
/* Whether standard input is to be read, and so waited for. */
bool input_sender_wants(const struct input_sender *sender);
void input_sender_read(struct input_sender *sender);
/* Sends what is to be sent, and takes note of what was. */
void input_sender_work(struct input_sender *sender, struct link *link);
/* Until it has to be called again; -1: nothing waits for the time. */
int input_sender_wait_ms(const struct input_sender *sender);
void input_sender_done(struct input_sender *sender);

#endif
