/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/folder_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/manifest_internal.h"
#include "manifest/pool.h"
#include "manifest/tree.h"
#include "util/clock.h"
#include "util/mem.h"

#define WANTED (STATX_BASIC_STATS | STATX_BTIME)

struct job {
	struct pool_job head;
	char *path;
	uint32_t old;
	uint64_t mark;
};

struct at_work {
	const struct folder_walk *walk;
	struct pool pool;
	bool is_exact;
};

struct walker {
	struct at_work *work;
	void *worker;
};

int64_t folder_walk_ns(int64_t sec, uint32_t nsec)
{
	return sec * CLOCK_NS_PER_S + nsec;
}

static void push(struct at_work *work, char *path, uint32_t old, uint64_t mark)
{
	struct job *job = new0(struct job);

	job->path = path;
	job->old = old;
	job->mark = mark;
	pool_push(&work->pool, &job->head);
}

static bool is_stopped(const struct folder_walk *walk)
{
	return walk->stop && __atomic_load_n(walk->stop, __ATOMIC_RELAXED);
}

/* What a mount of the user's or one whose server is away says also to root. */
static bool is_mount_shut(int error)
{
	return error == EACCES || error == ENOTCONN || error == ESTALE || error == EHOSTDOWN;
}

static void look(struct walker *w, const struct walk_folder *folder, const char *name, uint32_t old)
{
	const struct folder_walk *walk = w->work->walk;
	struct statx st;
	struct walk_entry entry = {.name = name, .st = &st, .old = old};

	if (statx(folder->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, WANTED, &st) < 0) {
		entry.st = NULL;
		if (!scan_is_gone(-errno))
			walk->fail(
				w->worker, folder, &entry, is_mount_shut(errno) ? -EXDEV : -errno);
		return;
	}
	if (walk->visit(w->worker, folder, &entry) && S_ISDIR(st.stx_mode))
		push(w->work, scan_join(folder->path, name), entry.old, entry.mark);
}

/* Where a folder's time of change says all about its names. */
static bool is_exact(int fd)
{
	static const long kinds[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC, F2FS_SUPER_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (fs.f_type == kinds[i])
			return true;
	return false;
}

/* It holds the names that it held. */
static bool is_as_it_was(const struct walker *w, const struct walk_folder *folder)
{
	const struct snapshot_record *r;
	struct stat st;

	if (!w->work->is_exact || folder->old == SNAPSHOT_NONE)
		return false;
	r = &w->work->walk->old->records[folder->old];
	if ((snapshot_state(r) & (SNAPSHOT_RACY | SNAPSHOT_UNLISTED)) || fstat(folder->fd, &st) < 0)
		return false;
	return st.st_dev == r->dev && st.st_ino == r->ino &&
	       folder_walk_ns(st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec) == r->mtime_ns &&
	       folder_walk_ns(st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec) == r->ctime_ns;
}

/* Listing a folder costs as much as a look at a tenth of what is in it. */
static void look_again(struct walker *w, const struct walk_folder *folder)
{
	const struct snapshot *old = w->work->walk->old;
	const struct snapshot_record *r = &old->records[folder->old];

	for (uint32_t i = r->first; i < r->first + r->n_entries && !is_stopped(w->work->walk); i++)
		if (old->records[i].parent == folder->old)
			look(w, folder, old->text + old->records[i].name, i);
}

static int look_at_all(struct walker *w, const struct walk_folder *folder, DIR *dir)
{
	const struct folder_walk *walk = w->work->walk;
	struct dirent *e;

	while (!is_stopped(walk) && (errno = 0, e = readdir(dir))) {
		uint32_t old = SNAPSHOT_NONE;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (folder->old != SNAPSHOT_NONE)
			old = snapshot_find(walk->old, folder->old, slice_of(e->d_name));
		look(w, folder, e->d_name, old);
	}
	return is_stopped(walk) ? 0 : -errno;
}

static int list(struct walker *w, struct walk_folder *folder)
{
	DIR *dir;
	int r;

	if (strlen(folder->path) > TREE_PATH_MAX)
		return -ENAMETOOLONG;
	folder->fd = beneath_open_folder(w->work->walk->root_fd, folder->path);
	if (folder->fd < 0)
		return folder->fd;
	if (is_as_it_was(w, folder)) {
		look_again(w, folder);
		close(folder->fd);
		return 0;
	}
	dir = fdopendir(folder->fd);
	if (!dir) {
		r = -errno;
		close(folder->fd);
		return r;
	}
	r = look_at_all(w, folder, dir);
	closedir(dir);
	return r;
}

static void run(void *arg, struct pool_job *head)
{
	struct walker *w = arg;
	struct job *job = (struct job *)head;
	struct walk_folder folder = {
		.path = job->path, .fd = -1, .old = job->old, .mark = job->mark};
	int r = is_stopped(w->work->walk) ? 0 : list(w, &folder);

	/* EXDEV: another filesystem, of which nothing shows inside either. */
	if (r < 0 && !scan_is_gone(r) && r != -EXDEV)
		w->work->walk->fail(w->worker, &folder, NULL, r);
	free(job->path);
	free(job);
}

void folder_walk_run(const struct folder_walk *walk, const struct walk_folder *start)
{
	struct at_work work = {.walk = walk,
		.pool = POOL_INIT(run),
		.is_exact = walk->old && !walk->list_all && is_exact(walk->root_fd)};
	struct walker walkers[POOL_THREADS_MAX];
	void *workers[POOL_THREADS_MAX];
	size_t n = walk->n_workers < POOL_THREADS_MAX ? walk->n_workers : POOL_THREADS_MAX;

	for (size_t i = 0; i < n; i++) {
		walkers[i] = (struct walker){.work = &work, .worker = walk->workers[i]};
		workers[i] = &walkers[i];
	}
	push(&work, mem_dup(start->path), start->old, start->mark);
	pool_run(&work.pool, workers, n);
}
