/* SPDX-License-Identifier: Apache-2.0 */
/* What changes below a path of a living sandbox, read once for all in this process that want to hear it: the lines of a `cloche
 * watch-files` that the launcher starts (launcher/office_watch.c). The newest of them are kept, so that a listener that reads
 * slowly costs nothing but what it misses, and one that was cut off goes on where it was; that is also why a feed that
 * nobody listens to any more is kept for some seconds.
 *
 * A feed has an id, and numbers its entries from 1. All of this is the loop's. */
#ifndef SERVER_FILE_FEED_H
#define SERVER_FILE_FEED_H

#include "server/server.h"
#include "util/id.h"
#include "util/slice.h"

struct file_feed;
struct file_feed_hub;

struct file_feed_hub *file_feed_hub_new(struct server *server);
/* Once nobody listens any more, and no worker works. */
void file_feed_hub_free(struct file_feed_hub *hub);
SCOPED_TYPE(file_feed_hub)

/* The listener's own memory; the first two and arg are its to set. on_change: the feed's state changed, or there is more. It may
 * leave, but not join, within. */
struct file_feed_listener {
	void (*on_change)(void *arg);
	void *arg;
	struct file_feed *feed;
	struct file_feed_listener *prev, *next;
};

/* A place in a feed: behind entry n. */
struct file_feed_at {
	char id[ID_SIZE];
	int64_t n;
};

struct file_feed_ask {
	const char *account, *sandbox;
	struct slice path; /* absolute and clean */
	bool is_hook;      /* of a webhook: the path need not be there yet; counted apart */
	const struct file_feed_at *at; /* to go on there, if that can be had; may be NULL */
};
/* Listens, from now on. -EDQUOT, -EAGAIN with a sentence: there are too many. */
int file_feed_join(struct file_feed_hub *hub, const struct file_feed_ask *ask,
	struct file_feed_listener *listener, struct err *err);
void file_feed_leave(struct file_feed_listener *listener);

enum file_feed_state {
	FILE_FEED_STARTING,
	FILE_FEED_LIVE,
	FILE_FEED_ENDED,  /* with the sandbox */
	FILE_FEED_FAILED, /* file_feed_failure() says why */
};
enum file_feed_state file_feed_state(const struct file_feed *feed);
/* The errno of it, negative, and its sentence. */
int file_feed_failure(const struct file_feed *feed, struct err *err);

const char *file_feed_id(const struct file_feed *feed);
bool file_feed_has_begun(const struct file_feed *feed);
/* The entries that are kept: from first to last; last 0: there was none yet. */
int64_t file_feed_first(const struct file_feed *feed);
int64_t file_feed_last(const struct file_feed *feed);
/* How many folders were told as unwatched so far. */
int64_t file_feed_unwatched(const struct file_feed *feed);

/* One that is kept, as JSON: a change, or where is_gap {reason}: something stayed out of the feed there. */
struct file_feed_entry {
	struct slice json;
	bool is_gap;
};
struct file_feed_entry file_feed_get(const struct file_feed *feed, int64_t n);

#endif
