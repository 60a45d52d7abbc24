/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks that hear of files: each is watched for by one process of all replicas, the one that holds its lock, while its
 * sandbox lives. Which there are is looked up every second, at once where this replica made or removed one. */
#ifndef SERVER_FILE_HOOKS_H
#define SERVER_FILE_HOOKS_H

#include "server/server.h"
#include "util/err.h"

struct file_hooks;

int file_hooks_new(struct server *server, struct file_hooks **ret_hooks, struct err *err);
/* Before the workers go: what is gathered goes to the store, nothing more is looked up. */
void file_hooks_stop(struct file_hooks *hooks);
void file_hooks_free(struct file_hooks *hooks); /* before the feeds */
SCOPED_TYPE(file_hooks)

/* One was made or removed. From any thread. */
void file_hooks_changed(struct file_hooks *hooks);

#endif
