/* SPDX-License-Identifier: Apache-2.0 */
/* One output of an exec (stdout, stderr, or its terminal): read, kept, counted, passed on. */
#ifndef SUPERVISOR_EXEC_STREAM_H
#define SUPERVISOR_EXEC_STREAM_H

#include "record/record.h"
#include "supervisor/clip.h"
#include "supervisor/conn.h"

struct exec_stream {
	int fd; /* ours, non-blocking; -1: at its end */
	struct loop_io *io;
	enum wire_type type;
	struct clip clip;
	struct record_output *file; /* the whole output; NULL where it cannot be kept */
	struct record_cast *cast;   /* of a terminal */
	struct conn *conn;          /* who is attached; NULL: nobody */
	uint64_t late_bytes;        /* came after the row was written */
	bool is_late;
	void (*on_end)(void *ctx);
	void *ctx;
};

/* Takes fd over. */
void exec_stream_init(struct exec_stream *stream, struct loop *loop, int fd, enum wire_type type);
void exec_stream_done(struct exec_stream *stream);
/* Reads what is there now, at most a bounded amount more than the pipe holds. */
void exec_stream_catch_up(struct exec_stream *stream);
/* Nobody reads it any more: its writer gets EPIPE, as from a pipe without us. */
void exec_stream_cut(struct exec_stream *stream);
void exec_stream_attach(struct exec_stream *stream, struct conn *conn); /* NULL: detach */
void exec_stream_resume(struct exec_stream *stream); /* the client has caught up */

#endif
