/* SPDX-License-Identifier: Apache-2.0 */
/* What changes below a path of a living sandbox, as server-sent events:
 *
 *   event: begin   {path, unwatched}: from now on
 *   event: change  as `cloche watch-files` tells it (docs/watch-files.md)
 *   event: gap     {reason, left_out}: something is not told, so look again
 *   event: end     the sandbox has ended; event: error {detail}: the watch has
 *
 * Ids are FEED.N (file_feed.h). A client that reads slowly is told how much it missed, one that comes back what it missed, as
 * far as that is kept. On the loop. */
#ifndef SERVER_FILE_WATCH_H
#define SERVER_FILE_WATCH_H

#include "server/call.h"
#include "server/file_feed.h"

struct file_watch_ask {
	char sandbox[ID_SIZE];
	struct str path; /* absolute and clean */
	bool has_at;
	struct file_feed_at at; /* what the client has already */
};
void file_watch_ask_free(struct file_watch_ask *ask);
SCOPED_TYPE(file_watch_ask)

/* An id of this stream. -EINVAL. */
int file_watch_read_id(struct slice text, struct file_feed_at *ret, struct err *err);

/* call->then: call->state is a struct file_watch_ask, taken over. */
void file_watch_run(struct call *call);

#endif
