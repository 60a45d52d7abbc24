/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/watch_internal.h"
#include "util/clock.h"

/* What lies at the path of a folder may be another one by now, while events of its moving are on their way. */
static int open_path(struct watch *watch, const struct watch_entry *folder)
{
	scoped_str struct str path = {0};
	scoped_fd int fd = -1;

	watch_tree_add_path(folder, &path);
	fd = beneath_open_across(watch->root_fd, path.p);
	if (fd >= 0 && folder->parent && folder->wd >= 0 &&
		watch_scan_number(watch, fd) != folder->wd)
		return -ESTALE;
	return take_fd(&fd);
}

void watch_look_close(struct watch *watch)
{
	scoped_close(&watch->open_fd);
	watch->open_fd = -1;
	watch->open_entry = NULL;
}

int watch_look_folder(struct watch *watch, struct watch_entry *folder)
{
	int fd;

	if (watch->open_entry == folder)
		return watch->open_fd;
	watch_look_close(watch);
	fd = open_path(watch, folder);
	if (fd >= 0) {
		watch->open_fd = fd;
		watch->open_entry = folder;
	}
	return fd;
}

int watch_look_open(struct watch *watch, struct watch_entry *parent, const char *name)
{
	int fd = parent ? watch_look_folder(watch, parent) : watch->root_fd;

	return fd < 0 ? fd : beneath_open_across(fd, parent ? name : "");
}

static void take_in(const struct statx *sx, struct watch_seen *ret_seen)
{
	*ret_seen = (struct watch_seen){
		.dev = makedev(sx->stx_dev_major, sx->stx_dev_minor),
		.ino = sx->stx_ino,
		.links = sx->stx_nlink,
		.mode = sx->stx_mode,
		.uid = sx->stx_uid,
		.gid = sx->stx_gid,
		.size = S_ISREG(sx->stx_mode) ? (int64_t)sx->stx_size : 0,
		.mtime_ns = sx->stx_mtime.tv_sec * CLOCK_NS_PER_S + sx->stx_mtime.tv_nsec,
		.is_mount_root = (sx->stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
	};
}

/* The way there, or the thing itself, has gone. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ESTALE || r == -EXDEV;
}

static int look_at(int folder_fd, const char *name, struct statx *ret_sx)
{
	const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH;

	return statx(folder_fd, name, flags, STATX_BASIC_STATS, ret_sx) < 0 ? -errno : 0;
}

/* That the folder is not at its path says nothing of what is in it. */
static int open_parent(struct watch *watch, struct watch_entry *parent)
{
	int fd = parent ? watch_look_folder(watch, parent) : watch->root_fd;

	return is_gone(fd) ? -ESTALE : fd;
}

static int look(struct watch *watch, struct watch_entry *entry, struct statx *ret_sx)
{
	int fd = open_parent(watch, entry->parent);

	return fd < 0 ? fd : look_at(fd, entry->parent ? entry->name : "", ret_sx);
}

static int give(int r, const struct statx *sx, struct watch_seen *ret_seen)
{
	if (r < 0)
		return r != -ESTALE && is_gone(r) ? -ENOENT : r;
	take_in(sx, ret_seen);
	return 0;
}

int watch_look(struct watch *watch, struct watch_entry *entry, struct watch_seen *ret_seen)
{
	struct statx sx;
	int r = look(watch, entry, &sx);

	return give(r, &sx, ret_seen);
}

int watch_look_at(int folder_fd, const char *name, struct watch_seen *ret_seen)
{
	struct statx sx;
	int r = look_at(folder_fd, name, &sx);

	return give(r, &sx, ret_seen);
}
