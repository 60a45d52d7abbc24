/* SPDX-License-Identifier: Apache-2.0 */
/* One client on the control socket: frames in, frames out, each side bounded. */
#ifndef SUPERVISOR_CONN_H
#define SUPERVISOR_CONN_H

#include <jansson.h>

#include "control/wire.h"
#include "supervisor/loop.h"
#include "util/err.h"

struct conn;

struct conn_handler {
	void (*on_frame)(void *ctx, struct conn *conn, const struct wire_frame *frame);
	void (*on_drained)(void *ctx, struct conn *conn); /* what was queued has gone out */
	void (*on_gone)(void *ctx, struct conn *conn);    /* freed when this returns */
	void *ctx;
};

struct conn *conn_new(struct loop *loop, int sock, const struct conn_handler *handler);
void conn_free(struct conn *conn); /* closes; on_gone is not called */

void conn_send(struct conn *conn, enum wire_type type, struct slice payload);
void conn_answer_ok(struct conn *conn,
	struct slice members); /* {"ok":true, members...}; a JSON object or empty */
void conn_answer_error(struct conn *conn, int r, const struct err *err);
/* {"ok":true} with a descriptor, which is taken over. -EBUSY where other answers wait: it rides with a first byte. */
int conn_answer_fd(struct conn *conn, int fd, struct err *err);
/* More than CONN_HIGH bytes wait for a slow client: stop making more until on_drained, which comes for certain then,
 * whoever sends what waits. */
#define CONN_HIGH (1u << 20)
bool conn_is_full(struct conn *conn);
size_t conn_queued(const struct conn *conn);
/* Sends what is queued, waiting up to deadline_ms for a slow client: for the last words before the end. */
void conn_finish(struct conn *conn, int deadline_ms);

/* What the owner of the handler ties to a connection: the exec that it is attached to, whether it
 * waits for the sandbox's end. */
void conn_set_tag(struct conn *conn, void *tag);
void *conn_tag(const struct conn *conn);
void conn_set_wants_end(struct conn *conn);
bool conn_wants_end(const struct conn *conn);
/* A connection that was handed on to who may do less than we: for good. may_private: it may lead to addresses. */
void conn_narrow(struct conn *conn, bool may_private);
bool conn_is_narrow(const struct conn *conn);
bool conn_may_private(const struct conn *conn); /* also where it is not narrow */

#endif
