/* SPDX-License-Identifier: Apache-2.0 */
/* Input for a command that was begun by another request, which this process holds (exec_run.h). What it does not hold is
 * refused, with the reason. */
#ifndef SERVER_EXEC_STDIN_H
#define SERVER_EXEC_STDIN_H

#include "server/call.h"
#include "util/id.h"

struct exec_stdin_ask {
	char sandbox[ID_SIZE], exec[ID_SIZE];
	struct str bytes;
	bool is_end; /* and no more behind them */
};
void exec_stdin_ask_free(struct exec_stdin_ask *ask);
SCOPED_TYPE(exec_stdin_ask)

/* call->then: call->state is a struct exec_stdin_ask, taken over. */
void exec_stdin(struct call *call);

#endif
