/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the person at the terminal whether the sandbox may reach a place (--ask). One question at a time, a line each:
 * a key that was meant for the command is no answer. */
#ifndef CLI_ASK_TERMINAL_H
#define CLI_ASK_TERMINAL_H

#include <jansson.h>
#include <stdbool.h>

#include "util/str.h"

struct ask_terminal;

struct ask_terminal_config {
	const char *actor; /* who answers, as it stands in the record; borrowed */
	void (*send)(void *ctx, const char *body); /* sends the request "answer" with this body */
	void *ctx;
};

struct ask_terminal *ask_terminal_new(const struct ask_terminal_config *config);
void ask_terminal_free(struct ask_terminal *asks);

/* A question of the supervisor. Where there is no terminal to ask at, the answer is no. */
void ask_terminal_take(struct ask_terminal *asks, const json_t *question);
/* The descriptor to wait for while something is asked; -1: nothing is. Nobody else may read the terminal then. */
int ask_terminal_fd(const struct ask_terminal *asks);
/* Milliseconds until the question is no longer open; -1: nothing is asked. */
int ask_terminal_wait_ms(const struct ask_terminal *asks);
/* The descriptor is readable, or the time may be over. */
void ask_terminal_work(struct ask_terminal *asks, bool is_readable);

#endif
