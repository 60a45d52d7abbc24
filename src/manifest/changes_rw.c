/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/changes_rw.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/lower.h"
#include "manifest/manifest_internal.h"
#include "manifest/runs_on_host.h"
#include "util/mem.h"
#include "util/path.h"

int changes_rw_open(const char *host)
{
	struct stat st;

	if (lstat(host, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return lower_open(host);
	if (!S_ISREG(st.st_mode))
		return -EBADF;
	return path_open_judged(host, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

static bool is_by_host(const struct changes_rw_options *o, const struct changes *changes,
	const struct change *c, const char *path)
{
	scoped_str struct str absolute = {0};

	if (!path || !o->seen)
		return false;
	path_resolve(slice_of(changes->root), slice_of(path), &absolute);
	/* Folders are not written, attributes say too little, and a file may be written by another of its names. */
	if (c->after.has_other_names || S_ISDIR(c->after.mode ? c->after.mode : c->before.mode) ||
		c->kind == CHANGE_MODE)
		return false;
	return o->seen->touch(o->seen->data, str_slice(&absolute)) == RW_UNTOUCHED;
}

/* What was in a package.json before is not known, but of the many that others brought few have what would be run. */
static bool runs_on_host(int root_fd, const struct change *c)
{
	if (c->kind == CHANGE_MODE || !changes_runs_on_host(c))
		return false;
	return !runs_on_host_is_dependency(c->path) || changes_dependency_runs(root_fd, c);
}

static void finish_one(const struct changes_rw_options *o, const struct changes *changes,
	int root_fd, struct change *c)
{
	c->skipped_len = scan_skipped_len(c->path);
	if (c->skipped_len > 0)
		c->flags |= CHANGE_SKIPPED;
	if (S_ISREG(c->after.mode) && !c->after.sha256[0])
		c->flags |= CHANGE_UNREAD;
	if (is_by_host(o, changes, c, c->path) && (!c->from || is_by_host(o, changes, c, c->from)))
		c->flags |= CHANGE_HOST_CHANGED;
	if (runs_on_host(root_fd, c))
		c->flags |= CHANGE_RUNS_ON_HOST;
}

static int read_one(const struct change_set *set, const struct change_rw *rw,
	const struct changes_rw_options *o, struct changes *changes, struct err *err)
{
	scoped(snapshot) struct snapshot *before = NULL;
	scoped_fd int dirfd = open(set->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd int root_fd = -1;
	struct rw_query query = {.layer = &rw->place, .full = o->full, .seen = o->seen};
	int r = dirfd < 0 ? -errno : snapshot_open(dirfd, rw->before, false, &before);

	if (r < 0)
		return err_set(err, r, "what was there before is not known: %m");
	root_fd = changes_rw_open(rw->place.lower);
	if (root_fd < 0)
		return err_set(err, root_fd, "open '%s': %m", rw->place.lower);
	query.before = before;
	query.root_fd = root_fd;
	r = rw_scan(&query, changes, err);
	if (r < 0)
		return r;
	changes_sort(changes);
	for (size_t i = 0; i < changes->n_items; i++)
		finish_one(o, changes, root_fd, &changes->items[i]);
	changes_mark_quiet(changes);
	return 0;
}

/* Behind the mounts that are copies, before the root's own folders. */
static void insert(struct changes_list *list, struct changes *changes)
{
	size_t at = 0;

	changes_list_add(list, changes);
	while (at + 1 < list->n && (list->roots[at]->n >= 0 || list->roots[at]->rw))
		at++;
	for (size_t i = list->n - 1; i > at; i--)
		list->roots[i] = list->roots[i - 1];
	list->roots[at] = changes;
}

void changes_rw_read_all(const struct change_set *set, const struct changes_rw_options *options,
	struct changes_list *list)
{
	for (size_t i = 0; i < set->n_rws; i++) {
		const struct change_rw *rw = &set->rws[i];
		struct changes *changes = new0(struct changes);
		struct err err = {0};

		changes->root = mem_dup(rw->place.guest);
		changes->n = -1;
		changes->rw = true;
		changes->layer = &rw->place;
		if (read_one(set, rw, options, changes, &err) < 0 && !changes->unread)
			changes->unread = mem_dup(err.msg);
		insert(list, changes);
	}
}
