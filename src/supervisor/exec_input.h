/* SPDX-License-Identifier: Apache-2.0 */
/* The standard input of an exec: bytes from its client into a pipe or terminal that may be slow to take them. */
#ifndef SUPERVISOR_EXEC_INPUT_H
#define SUPERVISOR_EXEC_INPUT_H

#include "supervisor/conn.h"

/* A client keeps at most this much unacknowledged; more than twice of it is refused. */
#define EXEC_INPUT_WINDOW (256u << 10)

struct exec_input {
	int fd; /* -1: none, or closed */
	bool owns_fd;
	struct loop_io *io;
	struct str pending;
	size_t sent;
	uint64_t taken; /* told to the client as {"stdin":total}, with "closed":true where the
	                            program reads no more */
	bool at_end, is_in_line; /* the latter: what came last did not end its line */
	struct conn *conn;
};

/* A pipe's write end is taken over; a terminal's master stays the stream's. */
void exec_input_init(
	struct exec_input *input, struct loop *loop, int fd, bool owns_fd, struct conn *conn);
void exec_input_done(struct exec_input *input);
void exec_input_add(struct exec_input *input, struct slice bytes); /* empty: end of file */
bool exec_input_is_open(const struct exec_input *input);           /* it may be added to */
/* Its client is gone, and nobody else can add to it: a pipe ends behind what it holds. A terminal is left as it is. */
void exec_input_leave(struct exec_input *input);

#endif
