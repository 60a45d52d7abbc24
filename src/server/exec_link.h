/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to a supervisor over which one exec runs: the request, its input, what it prints, its end. On the loop. */
#ifndef SERVER_EXEC_LINK_H
#define SERVER_EXEC_LINK_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "util/err.h"
#include "util/slice.h"

struct exec_link;

/* on_end comes once and is the last; it may free the link. on_output may end it by exec_link_free() as well. */
struct exec_link_handler {
	void (*on_started)(void *ctx, const char *exec);
	void (*on_output)(void *ctx, int stream, struct slice bytes); /* 0: stdout, 1: stderr */
	/* r negative: it did not start, or the sandbox ended (-EPIPE); err says how. Else row is what the
	 * supervisor tells of its end, the caller's for the call. */
	void (*on_end)(void *ctx, int r, const struct err *err, const json_t *row);
	void *ctx;
};

/* Takes fd over. spec: of spec_exec_write(). Both parts of the input (may be empty) are borrowed until the end; its end
 * follows them where has_input, unless more comes by exec_link_feed(). */
struct exec_link_ask {
	int fd;
	struct slice spec, input[2];
	bool has_input, stays_open;
};
struct exec_link *exec_link_new(struct event_base *base, const struct exec_link_ask *ask,
	const struct exec_link_handler *handler);
void exec_link_free(struct exec_link *link); /* the exec goes on */

/* Output waits at its writer, as in a pipe that nobody reads. */
void exec_link_hold(struct exec_link *link, bool is_held);
/* More input, copied; is_end: and no more behind it. */
void exec_link_feed(struct exec_link *link, struct slice bytes, bool is_end);
/* Bytes of input that the command has not taken yet. */
size_t exec_link_untaken(const struct exec_link *link);
/* Its end was sent or will be, or the command reads no more of it. */
bool exec_link_is_input_over(const struct exec_link *link);
/* Without waiting for an answer. body: members, or empty. */
void exec_link_send(struct exec_link *link, const char *request, const char *body);

#endif
