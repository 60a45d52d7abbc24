/* SPDX-License-Identifier: Apache-2.0 */
/* An operation on a sandbox's files on its way: asked of the supervisor as an exec is, answered when its row is in the log.
 * What comes back was written inside, so it is read as any foreign text. On the loop. */
#ifndef SERVER_FILE_RUN_H
#define SERVER_FILE_RUN_H

#include "proto/files_wire.h"
#include "server/call.h"
#include "util/id.h"

struct file_ask {
	char sandbox[ID_SIZE];
	int fd;          /* to the supervisor, taken over */
	struct str spec; /* of spec_exec_write() */
	struct str head; /* of files_wire_write() */
	struct str own;  /* content that is not the request's body */
	bool has_body;   /* the request's body is the content */
	bool is_download;
};
void file_ask_free(struct file_ask *ask);
SCOPED_TYPE(file_ask)

/* call->then: call->state is a struct file_ask, taken over. */
void file_run(struct call *call);

#endif
