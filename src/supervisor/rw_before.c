/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/rw_before.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "manifest/hash_cache.h"
#include "manifest/snapshot_take.h"
#include "sandbox/mounts.h"
#include "supervisor/rights.h"
#include "supervisor/tracing.h"
#include "util/clock.h"
#include "util/mem.h"
#include "view/file_touched.h"

#define WAIT_MS   1000 /* that the first command waits for the stamps, and then */
#define READ_MS   50   /* for files to be read: all of a small folder */
#define NAME_SIZE 32

/* One mount. */
struct place {
	const char *host;
	char name[NAME_SIZE]; /* of its snapshot in the change set */
	int root_fd;
	struct snapshot *before; /* NULL: it could not be had */
};

struct rw_before {
	pthread_t thread;
	bool is_started;
	bool stop;     /* atomic */
	bool released; /* atomic: nobody waits any more */
	const char *state_dir;
	int changes_fd;
	bool full;
	bool goes_on; /* what was taken before the sandbox was suspended stays */
	struct place *places;
	size_t n;
	pthread_mutex_t lock;
	pthread_cond_t walked;
	bool is_walked, is_read, is_late; /* under lock */
	struct file_touched *touched;     /* the supervisor's thread only */
	struct rw_seen seen;
	bool is_watched;
};

/* ---- the thread ---- */

static bool is_stopped(struct rw_before *rw)
{
	return __atomic_load_n(&rw->stop, __ATOMIC_RELAXED);
}

static int take_place(struct rw_before *rw, struct place *place, struct err *err)
{
	scoped(snapshot) struct snapshot *old = NULL;
	struct snapshot_source source = {.stop = &rw->stop};
	int r;

	place->root_fd = changes_rw_open(place->host);
	if (place->root_fd < 0)
		return err_set(err, place->root_fd, "open '%s': %m", place->host);
	if (rw->goes_on && snapshot_open(rw->changes_fd, place->name, true, &place->before) == 0)
		return 0;
	if (!rw->full)
		(void)hash_cache_open(
			rw->state_dir, place->root_fd, &old); /* without it, all is read anew */
	source.root_fd = place->root_fd;
	source.old = old;
	r = snapshot_take(&source, rw->changes_fd, place->name, err);
	return r < 0 ? r : snapshot_open(rw->changes_fd, place->name, true, &place->before);
}

static void take_all(struct rw_before *rw)
{
	for (size_t i = 0; i < rw->n; i++) {
		struct place *place = &rw->places[i];

		if (is_stopped(rw) || take_place(rw, place, NULL) < 0)
			continue; /* the end finds no snapshot, and says so */
		snapshot_hash(place->before, place->root_fd,
			rw->full ? SNAPSHOT_REACH_FULL : SNAPSHOT_REACH_RACY, &rw->stop);
	}
}

/* The first command may be at work already: what is young may be what it wrote. */
static bool say_walked(struct rw_before *rw)
{
	bool is_late;

	pthread_mutex_lock(&rw->lock);
	rw->is_walked = true;
	is_late = rw->is_late;
	pthread_cond_broadcast(&rw->walked);
	pthread_mutex_unlock(&rw->lock);
	return is_late;
}

static void doubt_young(struct rw_before *rw)
{
	for (size_t i = 0; i < rw->n; i++)
		if (rw->places[i].before)
			snapshot_doubt_racy(rw->places[i].before);
}

/* Nobody waits for this any more. Where it cannot be, it is a thread like others. */
static void be_idle(void)
{
	const struct sched_param none = {0};

	(void)sched_setscheduler(0, SCHED_IDLE, &none);
	(void)syscall(
		SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

static void read_most(struct rw_before *rw, const bool *stop)
{
	for (size_t i = 0; i < rw->n; i++)
		if (rw->places[i].before)
			snapshot_hash(rw->places[i].before, rw->places[i].root_fd,
				SNAPSHOT_REACH_MOST, stop);
}

static void say_read(struct rw_before *rw)
{
	pthread_mutex_lock(&rw->lock);
	rw->is_read = true;
	pthread_cond_broadcast(&rw->walked);
	pthread_mutex_unlock(&rw->lock);
}

static void *work(void *arg)
{
	struct rw_before *rw = arg;

	/* A thread has the rights of the one that started it, and would keep them. */
	if (rights_keep(RIGHTS_RUNNING, NULL) == 0)
		take_all(rw);
	if (say_walked(rw))
		doubt_young(rw);
	read_most(rw, &rw->released);
	say_read(rw);
	be_idle();
	read_most(rw, &rw->stop);
	return NULL;
}

/* ---- the supervisor's side ---- */

static void add_place(struct rw_before *rw, const struct spec_mount *mount, size_t number)
{
	struct place *place;

	rw->places = mem_grow(rw->places, rw->n + 1, sizeof(*rw->places));
	place = &rw->places[rw->n++];
	*place = (struct place){.host = mount->host, .root_fd = -1};
	(void)snprintf(place->name, sizeof(place->name), MOUNTS_BEFORE_NAME, number);
	file_touched_add_root(rw->touched, slice_of(mount->guest));
}

void rw_before_start(struct supervisor *sup)
{
	const struct spec *spec = sup->spec;
	pthread_condattr_t monotonic;
	struct rw_before *rw;
	size_t n = 0;

	for (size_t i = 0; i < spec->n_mounts; i++)
		n += spec->mounts[i].mode == SPEC_MOUNT_RW && !spec->mounts[i].internal;
	if (n == 0)
		return;
	rw = sup->rw = new0(struct rw_before);
	rw->state_dir = sup->state_dir;
	rw->full = spec->full;
	rw->goes_on = sup->before != NULL;
	rw->changes_fd = open(sup->changes_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rw->touched = file_touched_new();
	pthread_mutex_init(&rw->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&rw->walked, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].mode == SPEC_MOUNT_RW && !spec->mounts[i].internal)
			add_place(rw, &spec->mounts[i], i);
	rw->is_started = pthread_create(&rw->thread, NULL, work, rw) == 0;
}

static void say_late(struct supervisor *sup)
{
	struct event ev = {.kind = EVENT_HINT};

	event_set_text(&ev, reason,
		"what is mounted rw is large: the first command began before all of it was looked "
		"at, so what it changed in its first moments may not be known (--full waits)");
	recorder_emit_now(sup->recorder, &ev);
}

/* Under lock. */
static void wait_for(struct rw_before *rw, const bool *done, int64_t limit_ms)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	if (limit_ms < INT64_MAX) {
		int64_t ns = until.tv_nsec + limit_ms * CLOCK_NS_PER_MS;

		until.tv_sec += ns / CLOCK_NS_PER_S;
		until.tv_nsec = ns % CLOCK_NS_PER_S;
	}
	while (rw->is_started && !*done && r == 0)
		r = limit_ms == INT64_MAX ? pthread_cond_wait(&rw->walked, &rw->lock)
		                          : pthread_cond_timedwait(&rw->walked, &rw->lock, &until);
}

static enum rw_touch find_touch(void *data, struct slice path)
{
	static const enum rw_touch of[] = {
		[FILE_TOUCH_NONE] = RW_UNTOUCHED,
		[FILE_TOUCH_RIGHTS] = RW_TOUCHED,
		[FILE_TOUCH_CONTENT] = RW_WRITTEN,
		[FILE_TOUCH_UNKNOWN] = RW_UNKNOWN,
	};

	return of[file_touched_find(data, path)];
}

static bool next_touched(void *data, size_t *i, struct slice *ret_path)
{
	return file_touched_next(data, i, ret_path);
}

void rw_before_wait(struct supervisor *sup)
{
	struct rw_before *rw = sup->rw;

	if (!rw)
		return;
	rw->seen = (struct rw_seen){.touch = find_touch, .next = next_touched, .data = rw->touched};
	/* What it did before it was suspended is not known any more: nothing is put down to the host then. */
	rw->is_watched = !rw->goes_on && sup->tracing && (sup->spec->trace & SPEC_TRACE_FILES);
	pthread_mutex_lock(&rw->lock);
	wait_for(rw, &rw->is_walked, rw->full ? INT64_MAX : WAIT_MS);
	rw->is_late = rw->is_started && !rw->is_walked;
	wait_for(rw, &rw->is_read, READ_MS);
	pthread_mutex_unlock(&rw->lock);
	__atomic_store_n(&rw->released, true, __ATOMIC_RELAXED);
	if (rw->is_late)
		say_late(sup);
}

void rw_before_note(struct rw_before *rw, const struct event *ev)
{
	file_touched_add(rw->touched, ev);
}

void rw_before_stop(struct supervisor *sup)
{
	struct rw_before *rw = sup->rw;

	if (!rw || !rw->is_started)
		return;
	__atomic_store_n(&rw->stop, true, __ATOMIC_RELAXED);
	__atomic_store_n(&rw->released, true, __ATOMIC_RELAXED);
	pthread_join(rw->thread, NULL);
	rw->is_started = false;
}

const struct rw_seen *rw_before_seen(const struct supervisor *sup)
{
	return sup->rw && sup->rw->is_watched ? &sup->rw->seen : NULL;
}

void rw_before_keep(struct supervisor *sup)
{
	for (size_t i = 0; sup->rw && i < sup->rw->n; i++) {
		const struct place *place = &sup->rw->places[i];

		/* Where it cannot be kept, the next one reads all files anew. */
		if (place->before && hash_cache_keep(sup->state_dir, place->root_fd,
					     sup->rw->changes_fd, place->name) < 0)
			(void)unlinkat(sup->rw->changes_fd, place->name, 0);
	}
}

void rw_before_free(struct rw_before *rw)
{
	if (!rw)
		return;
	for (size_t i = 0; i < rw->n; i++) {
		snapshot_free(rw->places[i].before);
		scoped_close(&rw->places[i].root_fd);
	}
	free(rw->places);
	file_touched_free(rw->touched);
	scoped_close(&rw->changes_fd);
	pthread_mutex_destroy(&rw->lock);
	pthread_cond_destroy(&rw->walked);
	free(rw);
}
