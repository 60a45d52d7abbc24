/* SPDX-License-Identifier: Apache-2.0 */
/* Reads folders. The watch is set first and the names are read then: whatever comes in between is seen by both, and what
 * happens to a name is noted, not counted, so twice is once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "manifest/watch_internal.h"
#include "util/mem.h"

#define FOLDER_EVENTS \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | \
		IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define FILE_EVENTS (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)

/* ---- watches ---- */

void watch_scan_give_up(struct watch *watch, struct watch_entry *entry)
{
	unsigned long long key = (unsigned)entry->wd;

	if (entry->wd < 0)
		return;
	(void)inotify_rm_watch(watch->inotify_fd, entry->wd); /* gone with its folder, mostly */
	(void)map_remove(watch->wds, map_int_key(&key));
	watch->n_wds--;
	entry->wd = -1;
}

/* The watch of an open file or folder; the same one for the same inode. Where there may be no more, only one that is there. */
static int add_watch(struct watch *watch, int fd, uint32_t events)
{
	scoped_mem char *path = mem_printf("/proc/self/fd/%d", fd);
	bool is_full = watch->n_wds >= watch->config.watches_max;
	int wd =
		inotify_add_watch(watch->inotify_fd, path, events | (is_full ? IN_MASK_CREATE : 0));

	if (is_full && wd >= 0) {
		(void)inotify_rm_watch(watch->inotify_fd, wd); /* just made */
		return -ENOSPC;
	}
	if (is_full && errno == EEXIST)
		wd = inotify_add_watch(watch->inotify_fd, path, events);
	return wd < 0 ? -errno : wd;
}

static struct watch_entry *find_watched(const struct watch *watch, int wd)
{
	unsigned long long key = (unsigned)wd;

	return map_find(watch->wds, map_int_key(&key));
}

static void keep_watch(struct watch *watch, struct watch_entry *entry, int wd)
{
	unsigned long long key = (unsigned)wd;

	if (entry->wd == wd)
		return;
	watch_scan_give_up(watch, entry);
	*map_slot(watch->wds, map_int_key(&key)) = entry;
	watch->n_wds++;
	entry->wd = wd;
}

/* Asking for the number of a watch makes one where there was none. */
static int drop_unknown(struct watch *watch, int wd)
{
	if (wd != watch->parent_wd)
		(void)inotify_rm_watch(watch->inotify_fd, wd);
	return -ESTALE;
}

int watch_scan_number(struct watch *watch, int folder_fd)
{
	int wd = add_watch(watch, folder_fd, FOLDER_EVENTS);

	return wd < 0 || find_watched(watch, wd) ? wd : drop_unknown(watch, wd);
}

bool watch_scan_is_same(struct watch *watch, const struct watch_entry *folder)
{
	return watch_scan_lies_at(watch, folder, folder->parent, folder->name) == WATCH_LIES_IT;
}

enum watch_lies watch_scan_lies_at(struct watch *watch, const struct watch_entry *folder,
	struct watch_entry *parent, const char *name)
{
	scoped_fd int fd = watch_look_open(watch, parent, name);

	if (fd < 0)
		return WATCH_LIES_NONE;
	if (folder->wd < 0 || watch_scan_number(watch, fd) == folder->wd)
		return WATCH_LIES_IT;
	return WATCH_LIES_OTHER;
}

void watch_scan_file(struct watch *watch, struct watch_entry *file)
{
	int parent = watch_look_folder(watch, file->parent), wd;
	scoped_fd int fd = -1;

	if (parent < 0)
		return;
	fd = openat(parent, file->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	wd = fd < 0 ? -errno : add_watch(watch, fd, FILE_EVENTS);
	if (wd >= 0 && !find_watched(watch, wd))
		keep_watch(watch, file, wd);
}

/* ---- one folder ---- */

static bool is_kernels_own(int fd)
{
	static const unsigned own[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP2_SUPER_MAGIC,
		CGROUP_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, BPF_FS_MAGIC, TRACEFS_MAGIC, DEBUGFS_MAGIC};
	struct statfs fs;

	for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < sizeof(own) / sizeof(own[0]); i++)
		if ((unsigned)fs.f_type == own[i])
			return true;
	return false;
}

static void push(struct watch *watch, struct watch_entry *folder)
{
	if (folder->is_queued)
		return;
	folder->is_queued = true;
	if (watch->n_queue == watch->queue_room) {
		watch->queue_room = watch->queue_room ? watch->queue_room * 2 : 64;
		watch->queue =
			mem_grow(watch->queue, watch->queue_room, sizeof(struct watch_entry *));
	}
	watch->queue[watch->n_queue++] = folder;
}

/* What was known at the name is no folder, or no more one. */
static bool has_turned(const struct watch_entry *entry, const struct watch_seen *seen)
{
	return entry->is_folder != (S_ISDIR(seen->mode) != 0);
}

static void meet_known(
	struct watch *watch, struct watch_entry *entry, const struct watch_seen *seen)
{
	watch_tree_set_gone(&watch->tree, entry, false);
	if (!entry->is_folder && (entry->told.ino != seen->ino || entry->told.dev != seen->dev))
		watch_event_touched(watch, entry, WATCH_WHY_MADE);
	else
		watch_event_touched(watch, entry, WATCH_WHY_COMPARE | WATCH_WHY_LOOK);
	if (entry->is_folder)
		push(watch, entry);
}

static void meet(struct watch *watch, struct watch_entry *folder, int fd, const char *name,
	enum watch_scan how)
{
	struct watch_entry *entry = watch_tree_find(&watch->tree, folder, name);
	struct watch_seen seen;
	bool is_new = !entry;

	if (is_new && watch->tree.n >= watch->config.entries_max) {
		if (!folder->is_left_out)
			watch_tell_unwatched(watch, folder, "too many files");
		folder->is_left_out = true;
		return;
	}
	if (is_new)
		entry = watch_tree_add(&watch->tree, folder, name);
	entry->round = watch->round;
	if (watch_look_at(fd, name, &seen) < 0) {
		if (is_new)
			watch_tree_remove(&watch->tree, entry);
		return;
	}
	if (!is_new && has_turned(entry, &seen)) {
		watch_tell_gone(watch, entry);
		entry = watch_tree_add(&watch->tree, folder, name);
		entry->round = watch->round;
		is_new = true;
	}
	if (!is_new) {
		if (how == WATCH_SCAN_AGAIN)
			meet_known(watch, entry, &seen);
		return;
	}
	entry->is_folder = S_ISDIR(seen.mode);
	if (how == WATCH_SCAN_FIRST && folder->told.mode)
		watch_tree_tell(&watch->tree, entry, &seen);
	else
		watch_event_touched(watch, entry, WATCH_WHY_MADE);
	if (entry->is_folder)
		push(watch, entry);
	else if (seen.is_mount_root)
		watch_scan_file(watch, entry);
}

/* What a folder that was read again had and has no more. */
static void miss(struct watch *watch, struct watch_entry *folder)
{
	for (struct watch_entry *e = folder->first, *next; e; e = next) {
		next = e->next;
		if (e->round == watch->round)
			continue;
		e->is_moving = true; /* perhaps: it may be found elsewhere */
		watch_event_gone(watch, e);
	}
}

static int read_names(struct watch *watch, struct watch_entry *folder, int fd, enum watch_scan how)
{
	int names_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = names_fd < 0 ? NULL : fdopendir(names_fd);
	const char *only = folder->parent ? NULL : watch->only;
	struct dirent *e;
	int r;

	if (!dir) {
		scoped_close(&names_fd);
		return -errno;
	}
	while ((errno = 0, e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!only || strcmp(only, e->d_name) == 0)
			meet(watch, folder, fd, e->d_name, how);
	}
	r = -errno;
	closedir(dir);
	return r;
}

/* A folder was found elsewhere than where it was taken to be. What lies there may be one of which no more events come: they
 * were taken for events of this one. */
static void look_behind(
	struct watch *watch, struct watch_entry *parent, const char *name, enum watch_scan how)
{
	bool is_asked_for = parent->parent || !watch->only || strcmp(name, watch->only) == 0;
	int fd = watch_look_folder(watch, parent);

	if (fd < 0)
		parent->is_unread = watch->has_unread = true;
	else if (is_asked_for)
		meet(watch, parent, fd, name, how);
}

/* An inode that is watched at another place already. true: it was moved from there, and the entry that was new is no
 * more; false: both are there, by two mounts of one folder. */
static bool take_moved(struct watch *watch, struct watch_entry *folder, struct watch_entry *other,
	enum watch_scan how)
{
	scoped_mem char *name = mem_dup(folder->name), *old_name = mem_dup(other->name);
	struct watch_entry *parent = folder->parent, *old_parent = other->parent;

	if (!other->is_folder || !parent || watch_scan_is_same(watch, other))
		return false;
	if (how == WATCH_SCAN_FIRST)
		watch_tree_remove(&watch->tree, folder);
	else
		watch_tell_gone(watch, folder);
	other->round = watch->round;
	push(watch, other);
	watch_event_moved_folder(watch, other, parent, name);
	look_behind(watch, old_parent, old_name, how);
	return true;
}

/* As set_watch(), where its watch is that of another one. */
static int share_watch(struct watch *watch, struct watch_entry *folder, struct watch_entry *other,
	enum watch_scan how)
{
	if (watch_tree_is_in(other, folder))
		return -ESTALE; /* moved up, to where its folder was */
	if (take_moved(watch, folder, other, how))
		return 0;
	if (watch_scan_lies_at(watch, other, folder->parent, folder->name) != WATCH_LIES_IT)
		return -ENOENT; /* it moved while we looked */
	if (folder->wd >= 0 && folder->parent)
		return -ESTALE;
	folder->is_left_out = true;
	watch_tell_unwatched(watch, folder, "the same folder is watched at another place");
	return 0;
}

/* 1: to be read; 0: not, there is nothing more to do; -ESTALE: another folder than the one that is known. */
static int set_watch(struct watch *watch, struct watch_entry *folder, int fd, enum watch_scan how)
{
	int wd = add_watch(watch, fd, FOLDER_EVENTS);
	struct watch_entry *other;

	if (wd < 0)
		return wd;
	other = find_watched(watch, wd);
	if (other && other != folder)
		return share_watch(watch, folder, other, how);
	if (!other && folder->wd >= 0 && folder->parent)
		return drop_unknown(watch, wd);
	keep_watch(watch, folder, wd);
	return 1;
}

static int scan_one(struct watch *watch, struct watch_entry *folder, enum watch_scan how)
{
	scoped_fd int fd = watch_look_open(watch, folder->parent, folder->name);
	bool is_anew = folder->wd < 0 && folder->first; /* its watch was lost */
	int r;

	if (fd < 0)
		return fd == -ESTALE ? -ENOENT : fd;
	how = is_anew ? WATCH_SCAN_AGAIN : how;
	if (folder->parent && is_kernels_own(fd)) {
		if (folder->wd >= 0)
			return -ESTALE;
		folder->is_left_out = true;
		return 0;
	}
	r = set_watch(watch, folder, fd, how);
	if (r <= 0)
		return r;
	folder->is_unread = false;
	r = read_names(watch, folder, fd, how);
	if (r == 0 && how == WATCH_SCAN_AGAIN)
		miss(watch, folder);
	return r;
}

/* A folder at whose name there is another one now. */
static void replace(struct watch *watch, struct watch_entry *folder)
{
	struct watch_entry *parent = folder->parent;
	scoped_mem char *name = mem_dup(folder->name);

	watch_tell_gone(watch, folder);
	folder = watch_tree_add(&watch->tree, parent, name);
	folder->is_folder = true;
	folder->round = watch->round;
	watch_event_touched(watch, folder, WATCH_WHY_MADE);
	push(watch, folder);
}

static void note_failure(
	struct watch *watch, struct watch_entry *folder, enum watch_scan how, int r)
{
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV || r == -EAGAIN) {
		watch->has_unread = true;
		watch->is_doubtful |= how == WATCH_SCAN_AGAIN && folder->wd >= 0;
		return;
	}
	folder->is_left_out = true;
	watch_tell_unwatched(watch, folder,
		r == -ENOSPC ? "no watch is left for it: raise fs.inotify.max_user_watches"
			     : strerror(-r));
}

static void empty_queue(struct watch *watch)
{
	for (size_t i = 0; i < watch->n_queue; i++)
		if (watch->queue[i])
			watch->queue[i]->is_queued = false;
	watch->n_queue = 0;
}

static int scan_queue(struct watch *watch, enum watch_scan how)
{
	watch->round++;
	while (watch->n_queue > 0) {
		struct watch_entry *next = watch->queue[--watch->n_queue];
		bool is_root = next && !next->parent;
		int r;

		if (!next)
			continue;
		next->is_queued = false;
		r = scan_one(watch, next, how);
		if (r < 0 && is_root) {
			empty_queue(watch);
			return r;
		}
		if (r == -ESTALE)
			replace(watch, next);
		else if (r < 0)
			note_failure(watch, next, how, r);
	}
	return 0;
}

int watch_scan(struct watch *watch, struct watch_entry *folder, enum watch_scan how)
{
	push(watch, folder);
	return scan_queue(watch, how);
}

void watch_scan_unread(struct watch *watch)
{
	struct watch_entry *root = &watch->tree.root;

	if (!watch->has_unread)
		return;
	watch->has_unread = false;
	for (struct watch_entry *e = root; (e = watch_tree_walk(root, e));)
		if (e->is_folder && !e->is_gone && (e->is_unread || (e->wd < 0 && !e->is_left_out)))
			push(watch, e);
	(void)scan_queue(watch, WATCH_SCAN_NEW);
}
