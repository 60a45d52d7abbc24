/* SPDX-License-Identifier: Apache-2.0 */
/* Each sandbox that has not ended has a reader of its log (index_record.h); whoever catches up holds its lock meanwhile, so that
 * rows go in in their order. A log that grows is noticed by inotify, on the loop, and read by a worker; one that inotify has no
 * room for is looked at now and then. One that has ended, and is in the store, is let go of: nothing of it stays open. */
#include "server/indexer.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "server/complaint.h"
#include "server/http_status.h"
#include "server/index_record.h"
#include "server/lost_records.h"
#include "server/workers.h"
#include "util/clock.h"
#include "util/id.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"

#define TICK_MS      1000 /* between looks at what nobody tells us of */
#define AGAIN_MS     2000 /* after the store failed */
#define GONE_MS      1000
#define AGAIN_MAX_MS (300 * 1000)
#define WATCH_ALL    (IN_CREATE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)

struct entry { /* a sandbox whose log is followed */
	pthread_mutex_t lock;
	struct index_record *record;
	char id[ID_SIZE];
	int watch;        /* -1: none */
	bool is_queued;   /* a worker will look; the lock of the indexer is for all from here on */
	bool is_waiting;  /* for another try */
	bool is_ending;   /* nothing may tell us when its writer is gone */
	bool is_dropped;  /* out of the maps: its last user frees it */
	unsigned n_users; /* who was given it */
};

/* One look at a sandbox, by a worker; where it fails, again later, by itself. */
struct look {
	struct work work;
	struct look *next;
	struct indexer *indexer;
	int64_t wait_ms, due_ms; /* after the next failure; when it is to be done */
	bool is_gone;            /* it seems to be no more, and not to have grown */
	bool is_again;           /* it has waited */
	int r;
	char id[ID_SIZE];
};

struct indexer {
	struct server *server;
	int inotify, records_watch;
	struct event *io, *tick;
	pthread_mutex_t lock; /* of the two maps */
	struct map *by_id, *by_watch;
	struct look *later; /* the loop's */
	struct complaint failing, unwatched;
};

/* ---- entries ---- */

static void entry_free(struct entry *entry)
{
	if (!entry)
		return;
	index_record_free(entry->record);
	pthread_mutex_destroy(&entry->lock);
	free(entry);
}

static struct entry *entry_new(const char *id, struct index_record *record)
{
	struct entry *entry = new0(struct entry);

	entry->watch = -1;
	entry->record = record;
	memccpy(entry->id, id, '\0', sizeof(entry->id) - 1);
	pthread_mutex_init(&entry->lock, NULL);
	return entry;
}

/* The lock is held, here and in the next two. */
static void watch(struct indexer *indexer, struct entry *entry)
{
	scoped_mem char *log =
		mem_printf("%s/records/%s/log.jsonl", indexer->server->state_dir, entry->id);
	unsigned long long key;

	entry->watch = inotify_add_watch(indexer->inotify, log, IN_MODIFY);
	key = (unsigned long long)entry->watch;
	if (entry->watch >= 0)
		*map_slot(indexer->by_watch, map_int_key(&key)) = entry;
	else
		complaint_warn(&indexer->unwatched,
			"logs of sandboxes are looked at every %d s only, since no more can be "
			"watched: %s (raise fs.inotify.max_user_watches)",
			TICK_MS / 1000, strerror(errno));
}

static struct entry *use(struct indexer *indexer, const char *id)
{
	struct entry *entry = map_find(indexer->by_id, slice_of(id));

	if (entry)
		entry->n_users++;
	return entry;
}

static void drop(struct indexer *indexer, struct entry *entry)
{
	unsigned long long key = (unsigned long long)entry->watch;

	(void)map_remove(indexer->by_id, slice_of(entry->id));
	(void)map_remove(indexer->by_watch, map_int_key(&key));
	(void)inotify_rm_watch(indexer->inotify, entry->watch); /* gone with its file */
	entry->is_dropped = true;
}

/* Watched from before it is read: what is written meanwhile is noticed. */
static struct entry *enter(struct indexer *indexer, const char *id, struct index_record *record)
{
	struct entry *entry;

	pthread_mutex_lock(&indexer->lock);
	entry = use(indexer, id);
	if (entry) {
		index_record_free(record); /* another thread was quicker */
	} else {
		entry = entry_new(id, record);
		*map_slot(indexer->by_id, slice_of(entry->id)) = entry;
		entry->n_users = 1;
		watch(indexer, entry);
	}
	pthread_mutex_unlock(&indexer->lock);
	return entry;
}

static int get_entry(struct indexer *indexer, const char *id, struct entry **ret, struct err *err)
{
	struct index_record *record = NULL;
	int r;

	if (!id_is_valid("sb", id))
		return err_set(err, -ENOENT, "no sandbox has this id");
	pthread_mutex_lock(&indexer->lock);
	*ret = use(indexer, id);
	pthread_mutex_unlock(&indexer->lock);
	if (*ret)
		return 0;
	r = index_record_open(indexer->server, id, false, &record, err);
	if (r < 0)
		return r;
	*ret = enter(indexer, id, record);
	return 0;
}

static void give_back(struct indexer *indexer, struct entry *entry)
{
	bool is_last;

	pthread_mutex_lock(&indexer->lock);
	is_last = --entry->n_users == 0 && entry->is_dropped;
	pthread_mutex_unlock(&indexer->lock);
	if (is_last)
		entry_free(entry);
}

void indexer_drop(struct indexer *indexer, const char *id)
{
	struct entry *entry;

	pthread_mutex_lock(&indexer->lock);
	entry = use(indexer, id);
	if (entry)
		drop(indexer, entry);
	pthread_mutex_unlock(&indexer->lock);
	if (entry)
		give_back(indexer, entry);
}

/* ---- catching up ---- */

static void look_later(struct indexer *indexer, const char *id, int r);

static void set_ending(struct indexer *indexer, struct entry *entry, bool is_ending)
{
	pthread_mutex_lock(&indexer->lock);
	entry->is_ending = is_ending;
	pthread_mutex_unlock(&indexer->lock);
}

/* What is over is not kept open; a look that was queued opens it again and finds nothing new. */
static int catch_up(
	struct indexer *indexer, const char *id, struct index_wanted *wanted, struct err *err)
{
	enum index_record_end end = INDEX_RECORD_OPEN;
	struct entry *entry = NULL;
	int r = get_entry(indexer, id, &entry, err);

	if (!entry)
		return r;
	pthread_mutex_lock(&entry->lock);
	r = index_record_read(entry->record, wanted, err);
	if (r == 0)
		end = index_record_end(entry->record);
	pthread_mutex_unlock(&entry->lock);
	set_ending(indexer, entry, end == INDEX_RECORD_ENDING);
	if (end == INDEX_RECORD_OVER)
		indexer_drop(indexer, id);
	give_back(indexer, entry);
	return r;
}

static bool is_not_ours(int r)
{
	return r == -ENOENT || r == -EACCES || r == -ENOTDIR || r == -ELOOP;
}

int indexer_catch_up(struct indexer *indexer, const char *sandbox, const char *exec,
	struct str *row, struct err *err)
{
	struct index_wanted wanted = {.exec = exec, .row = row};
	int r = catch_up(indexer, sandbox, &wanted, err);

	if (is_not_ours(r))
		return err_set(err, -ENOENT, "there is no sandbox %s", sandbox);
	if (r < 0)
		look_later(indexer, sandbox, r);
	return wanted.is_found ? 1 : r;
}

size_t indexer_holding(
	struct indexer *indexer, const char *account, char (*ret_ids)[ID_SIZE], size_t max)
{
	int64_t now_ms = clock_wall_ms();
	struct slice id;
	size_t n = 0;
	void *value;

	pthread_mutex_lock(&indexer->lock);
	for (size_t i = 0; n < max && map_next(indexer->by_id, &i, &id, &value);) {
		const struct entry *entry = value;

		if (index_record_is_held(entry->record, account, now_ms))
			memcpy(ret_ids[n++], entry->id, ID_SIZE);
	}
	pthread_mutex_unlock(&indexer->lock);
	return n;
}

/* ---- what happens by itself ---- */

/* From here on what is written asks for another look: this one may be past it already. */
static void mark_looked_at(struct look *look)
{
	struct entry *entry;

	pthread_mutex_lock(&look->indexer->lock);
	entry = map_find(look->indexer->by_id, slice_of(look->id));
	if (entry)
		entry->is_queued = false;
	pthread_mutex_unlock(&look->indexer->lock);
}

static void run_look(struct work *work)
{
	struct look *look = (struct look *)work;
	struct index_wanted nothing = {0};
	struct err err = {0};

	mark_looked_at(look);
	look->r = look->is_gone ? lost_records_look(look->indexer->server, look->id, &err)
	                        : catch_up(look->indexer, look->id, &nothing, &err);
	if (look->r < 0 && !is_not_ours(look->r))
		complaint_warn(&look->indexer->failing, "%s is not indexed: %s", look->id, err.msg);
}

/* Whether it waits from here on: one of a sandbox is enough. */
static bool mark_waiting(struct look *look, bool is_waiting)
{
	struct entry *entry;
	bool is_first = true;

	pthread_mutex_lock(&look->indexer->lock);
	entry = look->is_gone ? NULL : map_find(look->indexer->by_id, slice_of(look->id));
	if (entry) {
		is_first = look->is_again || !entry->is_waiting;
		entry->is_waiting = is_waiting || !is_first;
	}
	pthread_mutex_unlock(&look->indexer->lock);
	return is_first;
}

static void wait_to_look(struct look *look)
{
	struct indexer *indexer = look->indexer;

	look->due_ms = clock_mono_ns() / CLOCK_NS_PER_MS + look->wait_ms;
	/* A store that is away comes back for all at once; what is wrong with one record stays so. */
	if (!http_status_is_passing(look->r) && look->wait_ms < AGAIN_MAX_MS)
		look->wait_ms *= 2;
	look->is_again = true;
	look->next = indexer->later;
	indexer->later = look;
}

static void look_done(struct work *work)
{
	struct look *look = (struct look *)work;
	bool has_failed = look->r < 0 && !is_not_ours(look->r);

	if (!has_failed && look->is_again)
		(void)mark_waiting(look, false);
	if (has_failed && mark_waiting(look, true))
		wait_to_look(look);
	else
		free(look);
}

static struct look *look_new(struct indexer *indexer, const char *id)
{
	struct look *look = new0(struct look);

	look->work = (struct work){.run = run_look, .done = look_done};
	look->indexer = indexer;
	look->wait_ms = AGAIN_MS;
	memccpy(look->id, id, '\0', sizeof(look->id) - 1);
	return look;
}

static void look_at(struct indexer *indexer, const char *id)
{
	workers_add(indexer->server->workers, &look_new(indexer, id)->work);
}

/* From any thread: as if a look had failed with r. */
static void look_later(struct indexer *indexer, const char *id, int r)
{
	struct look *look = look_new(indexer, id);

	look->r = r;
	workers_post(indexer->server->workers, &look->work);
}

/* Where it moved to the trash, its removal is entered already; it is asked a bit later, since retention forgets its own. */
static void look_whether_gone(struct indexer *indexer, const char *id)
{
	struct look *look = look_new(indexer, id);

	indexer_drop(indexer, id);
	look->is_gone = true;
	look->wait_ms = GONE_MS;
	wait_to_look(look);
}

/* All, or those of which nothing will be told. */
static void look_at_entries(struct indexer *indexer, bool is_all)
{
	struct slice id;
	void *value;

	pthread_mutex_lock(&indexer->lock);
	for (size_t i = 0; map_next(indexer->by_id, &i, &id, &value);) {
		struct entry *entry = value;

		if (entry->is_queued || !(is_all || entry->watch < 0 || entry->is_ending))
			continue;
		entry->is_queued = true;
		look_at(indexer, entry->id);
	}
	pthread_mutex_unlock(&indexer->lock);
}

static void look_at_due(struct indexer *indexer)
{
	int64_t now_ms = clock_mono_ns() / CLOCK_NS_PER_MS;
	struct look *waiting = indexer->later, *look;

	indexer->later = NULL;
	while ((look = waiting)) {
		waiting = look->next;
		if (look->due_ms > now_ms) {
			look->next = indexer->later;
			indexer->later = look;
			continue;
		}
		look->work.next = NULL;
		workers_add(indexer->server->workers, &look->work);
	}
}

static void on_tick(evutil_socket_t fd, short what, void *ctx)
{
	struct indexer *indexer = ctx;

	look_at_due(indexer);
	look_at_entries(indexer, false);
}

/* By those threads that keep nobody waiting. */
static int look_at_folder(struct indexer *indexer, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/records", indexer->server->state_dir);
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir)
		return err_set(err, -errno, "open '%s': %m", path);
	while ((e = readdir(dir)))
		if (id_is_valid("sb", e->d_name))
			workers_add(indexer->server->slow, &look_new(indexer, e->d_name)->work);
	closedir(dir);
	return 0;
}

static void on_record(struct indexer *indexer, const struct inotify_event *ev)
{
	if (ev->len == 0 || !id_is_valid("sb", ev->name))
		return;
	if (ev->mask & (IN_MOVED_FROM | IN_DELETE))
		look_whether_gone(indexer, ev->name);
	else
		look_at(indexer, ev->name);
}

static void on_log(struct indexer *indexer, int wd)
{
	unsigned long long key = (unsigned long long)wd;
	struct entry *entry;

	pthread_mutex_lock(&indexer->lock);
	entry = map_find(indexer->by_watch, map_int_key(&key));
	if (entry && !entry->is_queued) {
		entry->is_queued = true;
		look_at(indexer, entry->id);
	}
	pthread_mutex_unlock(&indexer->lock);
}

/* More happened than the kernel keeps for us: nobody knows where. */
static void on_overflow(struct indexer *indexer)
{
	struct err err;

	look_at_entries(indexer, true);
	if (look_at_folder(indexer, &err) < 0)
		log_warn("%s", err.msg);
}

static void on_inotify(evutil_socket_t fd, short what, void *ctx)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct indexer *indexer = ctx;
	ssize_t n = read(fd, buf, sizeof(buf));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (const struct inotify_event *)(buf + at);

		if (ev->mask & IN_Q_OVERFLOW)
			on_overflow(indexer);
		else if (ev->wd == indexer->records_watch)
			on_record(indexer, ev);
		else
			on_log(indexer, ev->wd);
		at += (ssize_t)(sizeof(*ev) + ev->len);
	}
}

/* ---- as a whole ---- */

static int open_inotify(struct indexer *indexer, struct err *err)
{
	scoped_mem char *dir = mem_printf("%s/records", indexer->server->state_dir);
	const struct timeval tick = {.tv_sec = TICK_MS / 1000};

	indexer->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (indexer->inotify < 0)
		return err_set(err, -errno, "make an inotify: %m");
	indexer->records_watch = inotify_add_watch(indexer->inotify, dir, WATCH_ALL | IN_ONLYDIR);
	if (indexer->records_watch < 0)
		return err_set(err, -errno, "watch '%s': %m", dir);
	indexer->io = event_new(
		indexer->server->base, indexer->inotify, EV_READ | EV_PERSIST, on_inotify, indexer);
	event_add(indexer->io, NULL);
	indexer->tick =
		event_new(indexer->server->base, -1, EV_TIMEOUT | EV_PERSIST, on_tick, indexer);
	event_add(indexer->tick, &tick);
	return 0;
}

int indexer_new(struct server *server, struct indexer **ret_indexer, struct err *err)
{
	scoped(indexer) struct indexer *indexer = new0(struct indexer);
	int r;

	indexer->server = server;
	indexer->inotify = -1;
	pthread_mutex_init(&indexer->lock, NULL);
	indexer->by_id = map_new();
	indexer->by_watch = map_new();
	r = open_inotify(indexer, err);
	if (r == 0)
		r = look_at_folder(indexer, err);
	if (r < 0)
		return r;
	*ret_indexer = take(&indexer);
	return 0;
}

void indexer_free(struct indexer *indexer)
{
	struct slice id;
	void *entry;

	if (!indexer)
		return;
	if (indexer->io)
		event_free(indexer->io);
	if (indexer->tick)
		event_free(indexer->tick);
	while (indexer->later) {
		struct look *look = indexer->later;

		indexer->later = look->next;
		free(look);
	}
	scoped_close(&indexer->inotify);
	for (size_t i = 0; map_next(indexer->by_id, &i, &id, &entry);)
		entry_free(entry);
	map_free(indexer->by_id);
	map_free(indexer->by_watch);
	pthread_mutex_destroy(&indexer->lock);
	free(indexer);
}
