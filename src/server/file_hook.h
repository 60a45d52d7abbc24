/* SPDX-License-Identifier: Apache-2.0 */
/* One webhook that hears of files, while this process is the one that watches for it: changes below its paths become deliveries in
 * the store, some at a time (file_batch.h). On the loop. */
#ifndef SERVER_FILE_HOOK_H
#define SERVER_FILE_HOOK_H

#include "server/server.h"
#include "server/webhook.h"

struct file_hook;

struct file_hook_ask {
	const char *account;
	struct webhook *webhook; /* with paths and a sandbox; taken over */
	/* The sandbox has ended or is suspended, and all that was told of it is in the store: to be freed, here or later. Not from
	 * within file_hook_new(). */
	void (*on_end)(void *arg);
	void *arg;
};
struct file_hook *file_hook_new(struct server *server, const struct file_hook_ask *ask);
/* What is gathered goes to the store now: the server ends. */
void file_hook_flush(struct file_hook *hook);
/* What is gathered is dropped. */
void file_hook_free(struct file_hook *hook);
SCOPED_TYPE(file_hook)

#endif
