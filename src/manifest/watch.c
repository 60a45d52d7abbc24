/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "manifest/watch_internal.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"

#define LIMIT_FILE    "/proc/sys/fs/inotify/max_user_watches"
#define LIMIT_DEFAULT 8192

static void on_free(void *arg, struct watch_entry *entry)
{
	struct watch *watch = arg;

	watch_scan_give_up(watch, entry);
	if (watch->open_entry == entry)
		watch_look_close(watch);
	for (size_t i = 0; entry->is_source && i < WATCH_MOVES; i++)
		if (watch->moves[i].entry == entry)
			watch->moves[i].entry = NULL;
	for (size_t i = 0; entry->is_queued && i < watch->n_queue; i++)
		if (watch->queue[i] == entry)
			watch->queue[i] = NULL;
}

/* Half of them: others of the user need some too, and how many folders there are the sandbox decides. */
static size_t half_of_limit(void)
{
	scoped_str struct str text = {0};
	unsigned long n = 0;

	if (fdio_read_file(AT_FDCWD, LIMIT_FILE, 64, &text) >= 0 && text.p)
		n = strtoul(text.p, NULL, 10);
	return n ? n / 2 : LIMIT_DEFAULT;
}

static int open_inotify(struct watch *watch, struct err *err)
{
	watch->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->inotify_fd < 0 && errno == EMFILE)
		return err_set(err, -EMFILE,
			"no more watchers may be made: raise fs.inotify.max_user_instances");
	return watch->inotify_fd < 0 ? err_set(err, -errno, "watch files: %m") : 0;
}

static int open_poll(struct watch *watch, struct err *err)
{
	struct epoll_event ev = {.events = EPOLLIN};

	watch->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (watch->timer_fd < 0 || watch->poll_fd < 0 ||
		epoll_ctl(watch->poll_fd, EPOLL_CTL_ADD, watch->timer_fd, &ev) < 0 ||
		epoll_ctl(watch->poll_fd, EPOLL_CTL_ADD, watch->inotify_fd, &ev) < 0)
		return err_set(err, -errno, "wait for files: %m");
	return 0;
}

/* The root's own going is told by nobody while we hold it open, but by the folder that holds it. */
static void watch_parent(struct watch *watch)
{
	scoped_fd int fd = openat(watch->root_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_mem char *path = mem_printf("/proc/self/fd/%d", fd);
	struct stat root, parent;

	if (fd < 0 || fstat(fd, &parent) < 0 || fstat(watch->root_fd, &root) < 0 ||
		(root.st_ino == parent.st_ino && root.st_dev == parent.st_dev))
		return;
	watch->parent_wd =
		inotify_add_watch(watch->inotify_fd, path, IN_DELETE | IN_ONLYDIR | IN_MASK_ADD);
}

static int read_first(struct watch *watch, struct err *err)
{
	struct watch_entry *root = &watch->tree.root;
	struct watch_seen seen;
	int r = watch_look(watch, root, &seen);

	if (r == 0) {
		watch_tree_tell(&watch->tree, root, &seen);
		if (watch->config.tell_all && !watch->only)
			watch_tell_plain(watch, WATCH_CREATED, NULL);
		r = watch_scan(
			watch, root, watch->config.tell_all ? WATCH_SCAN_NEW : WATCH_SCAN_FIRST);
	}
	if (r == -ENOSPC)
		return err_set(
			err, r, "no watch is left for it: raise fs.inotify.max_user_watches");
	return r < 0 ? err_set(err, r, "watch the folder: %m") : 0;
}

static int start(struct watch *watch, struct err *err)
{
	int r;

	watch->root_fd = fcntl(watch->config.root_fd, F_DUPFD_CLOEXEC, 0);
	if (watch->root_fd < 0)
		return err_set(err, -errno, "watch files: %m");
	r = open_inotify(watch, err);
	r = r < 0 ? r : open_poll(watch, err);
	if (r < 0)
		return r;
	watch->now_ns = clock_mono_ns();
	watch_parent(watch);
	return read_first(watch, err);
}

static void set_timer(struct watch *watch)
{
	int64_t due_ns = settle_next_ns(&watch->tree.settle);
	struct itimerspec at = {0};

	if (watch->has_overflown || watch->has_unread || watch->is_doubtful)
		due_ns = watch->now_ns + CLOCK_NS_PER_S / 4;
	if (due_ns >= 0) {
		at.it_value.tv_sec = due_ns / CLOCK_NS_PER_S;
		at.it_value.tv_nsec = due_ns % CLOCK_NS_PER_S + 1;
		if (at.it_value.tv_nsec == CLOCK_NS_PER_S)
			at.it_value.tv_nsec--;
	}
	(void)timerfd_settime(watch->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

int watch_open(const struct watch_config *config, struct watch **ret_watch, struct err *err)
{
	scoped(watch) struct watch *watch = new0(struct watch);
	int r;

	watch->config = *config;
	watch->only = mem_dup(config->only);
	watch->root_fd = watch->inotify_fd = watch->timer_fd = watch->poll_fd = -1;
	watch->open_fd = watch->parent_wd = -1;
	if (watch->config.watches_max == 0)
		watch->config.watches_max = half_of_limit();
	if (watch->config.entries_max == 0)
		watch->config.entries_max = WATCH_ENTRIES_MAX;
	watch->wds = map_new();
	watch_tree_init(&watch->tree);
	watch->tree.on_free = on_free;
	watch->tree.arg = watch;
	r = start(watch, err);
	watch_look_close(watch);
	if (r < 0)
		return r;
	set_timer(watch);
	*ret_watch = take(&watch);
	return 0;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	/* The watches go with the descriptor, at once. */
	scoped_close(&watch->inotify_fd);
	watch->inotify_fd = -1;
	watch->tree.on_free = NULL;
	watch_tree_done(&watch->tree);
	map_free(watch->wds);
	watch_look_close(watch);
	scoped_close(&watch->root_fd);
	scoped_close(&watch->timer_fd);
	scoped_close(&watch->poll_fd);
	free(watch->queue);
	free(watch->only);
	free(watch);
}

int watch_fd(const struct watch *watch)
{
	return watch->poll_fd;
}

static bool is_root_gone(const struct watch *watch)
{
	struct stat st;

	return watch->is_gone ||
	       (watch->may_be_gone && fstat(watch->root_fd, &st) == 0 && st.st_nlink == 0);
}

int watch_work(struct watch *watch)
{
	int r = watch_event_read(watch);

	if (r < 0)
		return r;
	watch->now_ns = clock_mono_ns();
	watch_scan_unread(watch);
	watch_tell_due(watch);
	watch_look_close(watch);
	if (is_root_gone(watch)) {
		watch->is_gone = true;
		watch_tell_end(watch);
		return 1;
	}
	watch->may_be_gone = false;
	set_timer(watch);
	return 0;
}

void watch_finish(struct watch *watch)
{
	if (watch->is_gone || watch_event_read(watch) < 0)
		return;
	watch->is_ending = true;
	watch->now_ns = clock_mono_ns();
	watch_tell_due(watch);
	watch_look_close(watch);
}
