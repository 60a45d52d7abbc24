/* SPDX-License-Identifier: Apache-2.0 */
/* An exec on its way: the connection to its supervisor on the one side, the client's exchange on the other. A client that
 * leaves changes nothing but who hears of the end, unless it asked for more. On the loop. */
#ifndef SERVER_EXEC_RUN_H
#define SERVER_EXEC_RUN_H

#include "server/call.h"
#include "util/id.h"

struct exec_ask {
	char sandbox[ID_SIZE];
	int fd;           /* to the supervisor, taken over */
	struct str spec;  /* of spec_exec_write() */
	struct str input; /* for its stdin, which ends behind it */
	bool is_stream, is_detached;
	bool kill_when_gone;
	struct allowance *allowance; /* where it counts, by account; NULL: not yet */
	char account[64];
};
void exec_ask_free(struct exec_ask *ask);
SCOPED_TYPE(exec_ask)

/* call->then of an exec: call->state is a struct exec_ask, taken over. Ends the call when the exec has ended. */
void exec_run(struct call *call);

#endif
