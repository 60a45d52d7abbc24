/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/host_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/owner.h"
#include "util/clock.h"
#include "util/id.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

#define TEMPORARY   ".cloche-"
#define ACCESS_LIST "system.posix_acl_access"
#define LIST_MAX    65536
#define MODE_MASK   01777U /* what a mode may bring to the host */

struct host_folder {
	int fd;
	uid_t uid;
	gid_t gid;
	/* One name for all, since there is one at a time: what knows the folders of an apply knows all it may leave. */
	char temporary[sizeof(TEMPORARY) + ID_SIZE];
	int (*on_temporary)(void *ctx, const char *path);
	void *ctx;
	char *told;            /* the folder it was last called for */
	struct map *worked_in; /* inodes of folders, as a set */
};

/* One act: the folder that holds the path, and the last part of it. */
struct act {
	int dirfd;
	const char *name, *temporary;
};

int host_folder_open(
	const char *path, uid_t uid, gid_t gid, struct host_folder **ret_folder, struct err *err)
{
	int fd = path_open_judged(path, O_RDONLY | O_DIRECTORY);
	char id[ID_SIZE];

	if (fd < 0)
		return err_set(err, fd, "open '%s': %m", path);
	*ret_folder = new0(struct host_folder);
	**ret_folder =
		(struct host_folder){.fd = fd, .uid = uid, .gid = gid, .worked_in = map_new()};
	id_new("tm", id);
	(void)snprintf(
		(*ret_folder)->temporary, sizeof((*ret_folder)->temporary), TEMPORARY "%s", id);
	return 0;
}

void host_folder_free(struct host_folder *folder)
{
	if (!folder)
		return;
	close(folder->fd);
	free(folder->told);
	map_free(folder->worked_in);
	free(folder);
}

void host_folder_on_temporary(
	struct host_folder *folder, int (*on_temporary)(void *ctx, const char *path), void *ctx)
{
	folder->on_temporary = on_temporary;
	folder->ctx = ctx;
}

/* With our own rights: whoever is told writes somewhere else. */
static int tell_temporary(struct host_folder *folder, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) + 1 : 0;
	scoped_mem char *parent = mem_copy(path, len), *at = NULL;

	if (!folder->on_temporary || (folder->told && strcmp(folder->told, parent) == 0))
		return 0;
	at = mem_printf("%s%s", parent, folder->temporary);
	free(folder->told);
	folder->told = take(&parent);
	return folder->on_temporary(folder->ctx, at);
}

static void note_work(const struct host_folder *folder, int dirfd)
{
	struct stat st;
	unsigned long long inode;

	if (fstat(dirfd, &st) < 0)
		return;
	inode = st.st_ino;
	*map_slot(folder->worked_in, map_int_key(&inode)) = folder->worked_in;
}

bool host_folder_has_worked_in(const struct host_folder *folder, uint64_t inode)
{
	unsigned long long key = inode;

	return map_find(folder->worked_in, map_int_key(&key)) != NULL;
}

static int begin(const struct host_folder *folder, const char *path, struct act *act)
{
	int r = owner_become(folder->uid, folder->gid);

	if (r < 0)
		return r;
	act->dirfd = beneath_open_parent(folder->fd, path, &act->name);
	if (act->dirfd < 0) {
		owner_leave();
		return act->dirfd;
	}
	act->temporary = folder->temporary;
	note_work(folder, act->dirfd);
	return 0;
}

static int begin_beside(struct host_folder *folder, const char *path, struct act *act)
{
	int r = tell_temporary(folder, path);

	return r < 0 ? r : begin(folder, path, act);
}

static int end(const struct act *act, int r)
{
	owner_leave();
	close(act->dirfd);
	return r;
}

int host_folder_stat(struct host_folder *folder, const char *path, struct stat *ret_st)
{
	return beneath_stat(folder->fd, path, ret_st);
}

static int check_seen(const struct act *act, const struct host_folder_seen *seen)
{
	struct stat st;

	if (!seen)
		return 0;
	if (fstatat(act->dirfd, act->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_size != seen->size || clock_ns(st.st_mtim) != seen->mtime_ns ||
		(seen->inode != 0 && st.st_ino != seen->inode) ||
		(seen->ctime_ns != 0 && clock_ns(st.st_ctim) != seen->ctime_ns))
		return -EAGAIN;
	return 0;
}

static int put_in_place(const struct act *act, bool replace, const struct host_folder_seen *seen)
{
	unsigned flags = replace ? 0 : RENAME_NOREPLACE;
	int r = replace ? check_seen(act, seen) : 0;

	if (r == 0 && renameat2(act->dirfd, act->temporary, act->dirfd, act->name, flags) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(
			act->dirfd, act->temporary, 0); /* the first error is the one to tell */
	return r;
}

/* The file that will be replaced keeps its group and access list, and its owner where that is another. */
static int keep_rights(const struct act *act, int fd)
{
	scoped_mem char *list = NULL;
	struct stat old, st;
	scoped_fd int old_fd = content_open(act->dirfd, act->name, &old);
	ssize_t len;

	if (old_fd < 0)
		return 0; /* a link, or unreadable for its owner: nothing to keep */
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((old.st_uid != st.st_uid || old.st_gid != st.st_gid) &&
		fchown(fd, old.st_uid, old.st_gid) < 0)
		return -errno;
	list = mem_zero(1, LIST_MAX);
	len = fgetxattr(old_fd, ACCESS_LIST, list, LIST_MAX);
	if (len > 0 && fsetxattr(fd, ACCESS_LIST, list, (size_t)len, 0) < 0)
		return -errno;
	return 0;
}

static int fill(const struct host_folder *folder, const struct act *act, int fd,
	const struct host_folder_source *source, bool replace)
{
	mode_t mode = source->mode & MODE_MASK;
	int64_t budget = CONTENT_HASH_MAX;
	int r = content_copy(source->data, fd);

	if (r == 0)
		r = content_copy_attributes(source->attributes, fd);
	if (r == 0 && replace) {
		owner_leave();
		r = keep_rights(act, fd);
		/* Before the owner changes back: only whoever owns it may set a mode. */
		if (r == 0 && fchmod(fd, mode) < 0)
			r = -errno;
		if (owner_become(folder->uid, folder->gid) < 0)
			r = -EPERM;
	} else if (r == 0 && fchmod(fd, mode) < 0) {
		r = -errno;
	}
	if (r == 0 && source->ret_sha256 && content_hash(fd, &budget, source->ret_sha256) < 0)
		source->ret_sha256[0] = '\0';
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

int host_folder_put_file(struct host_folder *folder, const char *path,
	const struct host_folder_source *source, bool replace)
{
	struct act act;
	int r = begin_beside(folder, path, &act);
	scoped_fd int fd = -1;

	if (r < 0)
		return r;
	fd = openat(
		act.dirfd, act.temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return end(&act, -errno);
	r = fill(folder, &act, fd, source, replace);
	if (r < 0)
		(void)unlinkat(act.dirfd, act.temporary, 0);
	else
		r = put_in_place(&act, replace, source->seen);
	return end(&act, r);
}

int host_folder_put_link(struct host_folder *folder, const char *path, const char *target,
	bool replace, const struct host_folder_seen *seen)
{
	struct act act;
	int r = begin_beside(folder, path, &act);

	if (r < 0)
		return r;
	if (symlinkat(target, act.dirfd, act.temporary) < 0)
		return end(&act, -errno);
	return end(&act, put_in_place(&act, replace, seen));
}

/* The new folder changes places with what was there, which is then removed. */
static int make_over(const struct act *act, const struct host_folder_seen *replaced)
{
	struct stat st;
	int r = check_seen(act, replaced);

	if (r < 0)
		return r;
	if (fstatat(act->dirfd, act->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode))
		return -EEXIST;
	if (mkdirat(act->dirfd, act->temporary, 0700) < 0)
		return -errno;
	if (renameat2(act->dirfd, act->temporary, act->dirfd, act->name, RENAME_EXCHANGE) < 0)
		r = -errno;
	if (unlinkat(act->dirfd, act->temporary, r < 0 ? AT_REMOVEDIR : 0) < 0 && r == 0)
		r = -errno;
	return r;
}

int host_folder_make(
	struct host_folder *folder, const char *path, const struct host_folder_seen *replaced)
{
	struct act act;
	struct stat st;
	int r = replaced ? begin_beside(folder, path, &act) : begin(folder, path, &act);

	if (r < 0)
		return r;
	if (mkdirat(act.dirfd, act.name, 0700) < 0)
		r = -errno;
	if (r == -EEXIST && fstatat(act.dirfd, act.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISDIR(st.st_mode))
		r = 0;
	else if (r == -EEXIST && replaced)
		r = make_over(&act, replaced);
	return end(&act, r);
}

static int open_name(const struct act *act, struct stat *ret_st)
{
	int fd = beneath_open(act->dirfd, act->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_st) == 0 && (S_ISREG(ret_st->st_mode) || S_ISDIR(ret_st->st_mode)))
		return fd;
	close(fd);
	return -EBADF;
}

int host_folder_set_mode(struct host_folder *folder, const char *path, mode_t mode)
{
	struct act act;
	struct stat st = {0};
	int r = begin(folder, path, &act);
	scoped_fd int fd = -1;

	if (r < 0)
		return r;
	/* Opened by root, or a file without rights could not be given any; changed by the owner. */
	owner_leave();
	fd = open_name(&act, &st);
	if (fd < 0)
		return end(&act, fd);
	r = owner_become(folder->uid, folder->gid);
	if (S_ISDIR(st.st_mode))
		mode = (mode & MODE_MASK) | (st.st_mode & S_ISGID);
	else
		mode &= MODE_MASK;
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (S_ISDIR(st.st_mode))
		note_work(folder, fd);
	return end(&act, r);
}

int host_folder_remove(struct host_folder *folder, const char *path, bool is_folder,
	const struct host_folder_seen *seen)
{
	struct act act;
	int r = begin(folder, path, &act);

	if (r < 0)
		return r;
	r = check_seen(&act, seen);
	if (r == 0 && unlinkat(act.dirfd, act.name, is_folder ? AT_REMOVEDIR : 0) < 0)
		r = -errno;
	return end(&act, r);
}

int host_folder_clean(struct host_folder *folder, const char *path)
{
	int r = host_folder_remove(folder, path, false, NULL);

	if (r == -EISDIR || r == -EPERM)
		r = host_folder_remove(folder, path, true, NULL);
	return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

int host_folder_rename(struct host_folder *folder, const char *from, const char *to)
{
	struct act source, target;
	int r = begin(folder, from, &source);

	if (r < 0)
		return r;
	r = begin(folder, to, &target);
	if (r < 0)
		return end(&source, r);
	if (renameat2(source.dirfd, source.name, target.dirfd, target.name, RENAME_NOREPLACE) < 0)
		r = -errno;
	(void)end(&target, r);
	return end(&source, r);
}

int host_folder_sync(struct host_folder *folder)
{
	return syncfs(folder->fd) < 0 ? -errno : 0;
}
