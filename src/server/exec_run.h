/* SPDX-License-Identifier: Apache-2.0 */
/* An exec on its way: the connection to its supervisor on the one side, the client's exchange on the other. A client that
 * leaves changes nothing but who hears of the end, unless it asked for more. One that is detached is let go of, unless it
 * takes input: then the connection is held until its end. On the loop. */
#ifndef SERVER_EXEC_RUN_H
#define SERVER_EXEC_RUN_H

#include "server/call.h"
#include "server/exec_trace.h"
#include "util/id.h"

struct exec_ask {
	char sandbox[ID_SIZE];
	int fd;           /* to the supervisor, taken over */
	struct str spec;  /* of spec_exec_write() */
	struct str input; /* for its stdin */
	bool has_input;
	bool stays_open; /* its stdin does not end behind that: more comes by exec_run_feed() */
	bool is_stream, is_detached;
	bool kill_when_gone;
	struct exec_trace trace;     /* that goes into the answer */
	struct allowance *allowance; /* where it counts, by account; NULL: not yet */
	char account[64];
};
void exec_ask_free(struct exec_ask *ask);
SCOPED_TYPE(exec_ask)

/* call->then of an exec: call->state is a struct exec_ask, taken over. Ends the call when the exec has ended. */
void exec_run(struct call *call);

#define EXEC_RUN_INPUT_MAX (1u << 20) /* of input that waits for one command to take it */

struct exec_run;
/* One that this process holds and that has not ended; NULL: none. */
struct exec_run *exec_run_find(struct server *server, const char *sandbox, const char *exec);
/* More input, copied; is_end: and no more behind it. All of it or nothing: -EDQUOT where too much waits, -EBADFD where its
 * input takes no more; *ret_code is the code of that, and err a sentence. *ret_waiting: bytes that it has not taken yet. */
int exec_run_feed(struct exec_run *run, struct slice bytes, bool is_end, size_t *ret_waiting,
	const char **ret_code, struct err *err);

#endif
