/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of one exec in its answer: what it did up to its end, in the shapes that were asked for. The row is written behind
 * all of that, so whoever has the row finds it in the record. */
#ifndef SERVER_EXEC_TRACE_H
#define SERVER_EXEC_TRACE_H

#include "server/call.h"

#define EXEC_TRACE_ITEMS_MAX 10000      /* of a shape: more is cut, and said */
#define EXEC_TRACE_BYTES_MAX (4u << 20) /* likewise */
#define EXEC_TRACE_BYTES_KEPT \
	(96u << 10) /* instead, in an answer that is kept for an Idempotency-Key: 1 MiB in all */

struct exec_trace {
	unsigned
		shapes; /* bits: by their place in trace_shapes, and behind those the events; 0: none */
	bool is_all; /* those that there are: it was `true` */
	size_t max_bytes;
	int64_t since; /* the event that says what is traced; 0: none */
	int64_t from;  /* the first event that may belong to it */
	bool is_blind; /* the sandbox is not seen whole, whatever it does */
};

/* Member "trace" of the body. */
int exec_trace_read(struct call *call, struct exec_trace *trace, struct err *err);
/* Before the exec is begun, over the connection for it, which stays the caller's: -EBADFD (409 not_traced) where the sandbox's
 * tracing is off, or does not tell of a shape that was named. */
int exec_trace_begin(struct call *call, struct exec_trace *trace, int fd, struct err *err);
/* Adds "trace", "trace_complete" and, where something is cut, "trace_cut" to its row, a JSON object. What cannot be read is
 * told as not complete. Reads the record: on a worker that may be slow. */
void exec_trace_add(struct server *server, const struct exec_trace *trace, const char *sandbox,
	const char *exec, struct str *row);

#endif
