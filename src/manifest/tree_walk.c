/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/tree_internal.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define NAMES_BYTES 4096 /* of names a job has: some hundred */

static const char *const skipped_names[] = {".git", "node_modules"};

/* ---- jobs and the folders they share ---- */

struct tree_job *tree_job_new(char *path)
{
	struct tree_job *job = new0(struct tree_job);

	job->path = path;
	return job;
}

static void let_go(struct tree_folder *folder)
{
	if (__atomic_sub_fetch(&folder->n_users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	close(folder->fd);
	free(folder->path);
	free(folder);
}

void tree_job_free(struct tree_job *job)
{
	if (job->folder)
		let_go(job->folder);
	free(job->path);
	free(job->names);
	free(job);
}

static void push_names(struct tree_worker *worker, struct tree_folder *folder, struct str *names)
{
	struct tree_job *job = tree_job_new(NULL);

	__atomic_add_fetch(&folder->n_users, 1, __ATOMIC_ACQ_REL);
	job->folder = folder;
	job->len = names->len;
	job->names = str_take(names);
	pool_push(&worker->work->pool, &job->head);
}

/* ---- folders ---- */

/* What was listed is not there as what it was. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EBADF || r == -ELOOP || r == -EINVAL;
}

static enum tree_problem problem_of(int r)
{
	return r == -EXDEV ? TREE_MOUNT : TREE_UNREADABLE;
}

static void add_problem(struct tree_worker *worker, const char *path, enum tree_problem problem)
{
	struct tree_entry *entry = tree_add(&worker->found, mem_dup(path));

	entry->mode = S_IFDIR;
	entry->problem = problem;
}

static int list_names(struct tree_worker *worker, struct tree_folder *folder, DIR *dir)
{
	scoped_str struct str names = {0};
	struct dirent *e;
	int r;

	while ((errno = 0, e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		str_putc(&names, (char)e->d_type);
		str_add(&names, e->d_name, strlen(e->d_name) + 1);
		if (names.len >= NAMES_BYTES)
			push_names(worker, folder, &names);
	}
	r = -errno;
	if (names.len > 0)
		push_names(worker, folder, &names);
	return r;
}

/* The folder itself, then its names. -errno where it cannot be listed. */
static int list_open(struct tree_worker *worker, const char *path, int fd)
{
	int names_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = names_fd < 0 ? NULL : fdopendir(names_fd);
	struct tree_folder *folder;
	struct stat st;
	int r;

	if (!dir) {
		scoped_close(&names_fd);
		close(fd);
		return -errno;
	}
	r = fstat(fd, &st) < 0 ? -errno : 0;
	folder = new0(struct tree_folder);
	*folder = (struct tree_folder){.path = mem_dup(path), .fd = fd, .n_users = 1};
	if (r == 0)
		r = list_names(worker, folder, dir);
	closedir(dir);
	let_go(folder);
	if (r == 0 && *path)
		tree_take_stat(worker->work->config, &st, tree_add(&worker->found, mem_dup(path)));
	return r;
}

static void list(struct tree_worker *worker, const char *path)
{
	int fd = strlen(path) > TREE_PATH_MAX
	                 ? -ENAMETOOLONG
	                 : beneath_open_folder(worker->work->config->root_fd, path);
	int r = fd < 0 ? fd : list_open(worker, path, fd);

	if (is_gone(r))
		worker->found.vanished++; /* as a folder */
	else if (r < 0)
		add_problem(worker, path, problem_of(r));
}

/* ---- what is in them ---- */

void tree_take_stat(
	const struct tree_config *config, const struct stat *st, struct tree_entry *entry)
{
	entry->mode = st->st_mode;
	entry->uid = st->st_uid - config->id_base < config->id_count ? st->st_uid - config->id_base
	                                                             : st->st_uid;
	entry->gid = st->st_gid - config->id_base < config->id_count ? st->st_gid - config->id_base
	                                                             : st->st_gid;
	entry->size = S_ISREG(st->st_mode) ? st->st_size : 0;
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
		entry->major = major(st->st_rdev);
		entry->minor = minor(st->st_rdev);
	}
}

static bool is_skipped(const struct tree_config *config, const char *name)
{
	for (size_t i = 0; i < sizeof(skipped_names) / sizeof(skipped_names[0]); i++)
		if (!config->all && strcmp(name, skipped_names[i]) == 0)
			return true;
	return false;
}

/* Those that are never opened. -ENOENT where it is gone. */
static int take_other(struct tree_worker *worker, int fd, const char *name, const struct stat *st,
	struct tree_entry *entry)
{
	tree_take_stat(worker->work->config, st, entry);
	return S_ISLNK(st->st_mode) ? content_read_link(fd, name, &entry->target) : 0;
}

/* One that is no folder to be entered. type: as its folder has it. What that calls a regular file is looked at once it is
 * open; a look before that would cost a tenth of all. */
static int look_at(struct tree_worker *worker, const struct tree_folder *folder, const char *name,
	unsigned char type, struct tree_entry *entry)
{
	struct stat st;
	int r = type == DT_REG ? tree_read_file(worker, folder->fd, name, entry) : -EAGAIN;

	if (r == 0 || is_gone(r))
		return r;
	if (fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (r == -EAGAIN)
		r = S_ISREG(st.st_mode) ? tree_read_file(worker, folder->fd, name, entry)
		                        : take_other(worker, folder->fd, name, &st, entry);
	if (r < 0 && !is_gone(r)) {
		tree_take_stat(worker->work->config, &st, entry);
		entry->problem = problem_of(r);
		return 0;
	}
	return r;
}

static bool is_to_enter(const struct tree_worker *worker, const struct tree_folder *folder,
	const char *name, unsigned char type)
{
	struct stat st;

	if (is_skipped(worker->work->config, name))
		return false;
	if (type != DT_UNKNOWN)
		return type == DT_DIR;
	return fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static void look(struct tree_worker *worker, const struct tree_folder *folder, const char *name,
	unsigned char type)
{
	struct tree_entry entry = {0};
	int r;

	if (is_to_enter(worker, folder, name, type)) {
		struct tree_job *job = tree_job_new(tree_path_below(folder->path, name));

		pool_push(&worker->work->pool, &job->head);
		return;
	}
	r = look_at(worker, folder, name, type, &entry);
	if (r < 0) {
		worker->found.vanished++;
		free(entry.target);
		return;
	}
	if (S_ISDIR(entry.mode))
		entry.problem = TREE_SKIPPED;
	entry.path = tree_path_below(folder->path, name);
	*tree_add(&worker->found, NULL) = entry;
}

void tree_walk(struct tree_worker *worker, struct tree_job *job)
{
	if (job->path) {
		list(worker, job->path);
		return;
	}
	for (const char *at = job->names; at < job->names + job->len; at += strlen(at + 1) + 2)
		look(worker, job->folder, at + 1, (unsigned char)*at);
}
