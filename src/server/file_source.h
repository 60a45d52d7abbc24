/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a `cloche watch-files` that the launcher starts for one sandbox and path (launcher/office_watch.c): asked for by a
 * worker, read on the loop. The process lives as long as our end of its pipe. */
#ifndef SERVER_FILE_SOURCE_H
#define SERVER_FILE_SOURCE_H

#include "server/server.h"
#include "util/slice.h"

struct file_source;

struct file_source_ask {
	const char *sandbox;
	struct slice path; /* absolute */
	bool is_patient;   /* it need not be there yet */
};

/* What comes, on the loop and never from within file_source_new(). Any of them may free the source. */
struct file_source_handler {
	void (*on_began)(void *arg);
	/* A change as JSON; NULL: one whose line was too long. Those that come before it has begun are what cannot be watched. */
	void (*on_change)(void *arg, const struct slice *json);
	void (*on_read)(void *arg); /* behind as many of them as came at once */
	/* The last. 0: the sandbox ended; else why it did not begin, or did not go on: -ENOENT, -EXDEV (made by the kernel),
	 * -ENOTCONN (nothing of the sandbox runs), -EAGAIN, ... */
	void (*on_over)(void *arg, int r, const struct err *err);
	void *arg;
};

struct file_source *file_source_new(struct server *server, const struct file_source_ask *ask,
	const struct file_source_handler *handler);
/* No callback comes any more. NULL is fine. */
void file_source_free(struct file_source *source);
SCOPED_TYPE(file_source)

/* Whether a change of this word is told in a line as the watch writes it: "unwatched". */
bool file_source_line_is(struct slice json, const char *change);

#endif
