/* SPDX-License-Identifier: Apache-2.0 */
/* Takes one change over. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/apply_work.h"
#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/journal.h"
#include "manifest/kept.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

static bool is_regular(const struct change *c)
{
	return S_ISREG(c->after.mode);
}

/* Data that was brought to where nothing changes: as apply_steps.c does. */
static int open_whole(const struct apply *a, const struct change *c)
{
	scoped_mem char *name = NULL;
	scoped_fd int folder = -1;

	if (c->own_layer == 0)
		return changes_open_own(a->layer, c, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	name = kept_name(a->layer, c->own_layer, c->own);
	folder = kept_open_folder(a->layer);
	return folder < 0 ? folder : beneath_open(folder, name, O_RDONLY | O_NOFOLLOW);
}

/* Opens the file that holds the data of a change. */
static int open_data(const struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	scoped_mem char *at = NULL;
	int fd;

	if (a->items[i].is_whole)
		return open_whole(a, c);
	if (!c->data)
		return changes_open_stored(a->layer, c, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	at = apply_work_now_at(a, c->data);
	fd = beneath_open(a->lower_fd, at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	return fd == -ENOENT ? -ESTALE : fd;
}

bool apply_item_is_stuck(struct apply *a, size_t i)
{
	const char *first = apply_work_find_stuck(a, i);

	if (first)
		apply_work_set_result(&a->items[i], APPLY_REFUSED,
			mem_printf("'%s' has to be renamed first, and is not", first));
	return first != NULL;
}

/* Makes the new folders that a path lies in. */
int apply_item_make_parents(struct apply *a, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct slice parent = {.p = path, .len = (size_t)(slash - path)};
		uintptr_t place = (uintptr_t)map_find(a->new_folders, parent);
		int r;

		if (place == 0 || a->items[place - 1].result == APPLY_DONE)
			continue;
		r = apply_item_make_folder(a, place - 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What the host's file was when it was compared. The time of change of one with other names there moves when one of those
 * goes, that of one that was renamed did by us. */
static bool see(const struct change *c, struct host_folder_seen *ret_seen)
{
	bool moved = c->kind == CHANGE_RENAMED || c->before.has_other_names;

	*ret_seen = (struct host_folder_seen){.ctime_ns = moved ? 0 : c->before.ctime_ns,
		.mtime_ns = c->before.mtime_ns,
		.size = c->before.size,
		.inode = c->kind == CHANGE_RENAMED ? 0 : c->before.inode};
	return c->before.mode != 0 && !S_ISDIR(c->before.mode);
}

/* A folder may take a file's place where that file went away in the sandbox too: it goes with what is named in the folder. */
static bool may_replace(const struct apply *a, const char *path)
{
	uintptr_t place = (uintptr_t)map_find(a->removals, slice_of(path));
	const struct apply_item *item = place ? &a->items[place - 1] : NULL;

	return item && !item->must_stay &&
	       (item->result == APPLY_WAITING || item->result == APPLY_NOT_NAMED);
}

int apply_item_make_folder(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	uintptr_t place = (uintptr_t)map_find(a->removals, slice_of(c->path));
	struct host_folder_seen seen;
	bool replace = may_replace(a, c->path) && see(&a->changes->items[place - 1], &seen);
	const struct journal_entry made = {.act = JOURNAL_MADE};
	struct stat st;
	int r = 0;

	if (replace || host_folder_stat(a->host, c->path, &st) < 0)
		r = journal_add(a->set->journal, a->layer->n, slice_of(c->path), &made);
	if (r == 0)
		r = host_folder_make(a->host, c->path, replace ? &seen : NULL);
	if (r < 0)
		return r;
	if (replace)
		apply_work_set_done(a, place - 1, NULL);
	apply_work_set_done(a, i, NULL);
	return 0;
}

static void list_losses(const struct change *c, int attributes_fd, struct str *lost)
{
	scoped_str struct str names = {0};

	if (c->after.mode & 06000)
		apply_work_add_loss(lost, "its set-id bits");
	if (c->flags & CHANGE_OWNER)
		apply_work_add_loss(lost, "its owner");
	if (content_rights_attributes(attributes_fd, &names) == 0 && names.len > 0)
		apply_work_add_loss(lost, names.p);
}

/* Writes a regular file with everything that may come over. */
int apply_item_write_file(struct apply *a, size_t i, bool replace, struct str *lost)
{
	const struct change *c = &a->changes->items[i];
	scoped_fd int data = open_data(a, i);
	scoped_fd int own = changes_open_own(a->layer, c, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct host_folder_source source = {.data = data, .attributes = own, .mode = c->after.mode};
	struct host_folder_seen seen;
	struct stat st;

	if (data < 0 || own < 0)
		return data < 0 ? data : own;
	if (fstat(data, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADF;
	list_losses(c, own, lost);
	if (see(c, &seen))
		source.seen = &seen;
	if (a->options->is_live)
		source.ret_sha256 = a->items[i].written;
	return host_folder_put_file(a->host, c->path, &source, replace);
}

/* Whether a link's text leads out of the folder: said, not judged. */
static bool leads_out(const struct apply *a, const struct change *c)
{
	scoped_str struct str at = {0}, to = {0};
	const char *slash = strrchr(c->path, '/');
	struct slice parent = {.p = c->path, .len = slash ? (size_t)(slash - c->path) : 0};

	path_resolve(slice_of(a->changes->root), parent, &at);
	path_resolve(str_slice(&at), slice_of(c->after.target), &to);
	return !path_is_beneath(str_slice(&to), slice_of(a->changes->root));
}

static int write_link(struct apply *a, size_t i, bool replace)
{
	const struct change *c = &a->changes->items[i];
	struct host_folder_seen seen;
	int r;

	if (!c->after.target)
		return -EBADF;
	r = host_folder_put_link(
		a->host, c->path, c->after.target, replace, see(c, &seen) ? &seen : NULL);
	if (r == 0 && leads_out(a, c))
		apply_work_set_result(
			&a->items[i], APPLY_DONE, mem_dup("a link that leads out of the folder"));
	return r;
}

/* Only mode, owner or attributes differ from what the host has at path. */
int apply_item_write_rights(struct apply *a, size_t i, struct str *lost)
{
	const struct change *c = &a->changes->items[i];

	/* A file with other names on the host gets one of its own, as it did in the sandbox. */
	if (is_regular(c) && ((c->flags & CHANGE_ATTRIBUTES) || c->before.has_other_names))
		return apply_item_write_file(a, i, true, lost);
	if (c->flags & CHANGE_OWNER)
		apply_work_add_loss(lost, "its owner");
	if ((c->after.mode & 06000) && !apply_work_is_folder(c))
		apply_work_add_loss(lost, "its set-id bits");
	if (S_ISLNK(c->after.mode) || !((c->before.mode ^ c->after.mode) & 01777))
		return 0;
	return host_folder_set_mode(a->host, c->path, c->after.mode);
}

int apply_item_put(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	bool replace = c->kind == CHANGE_CHANGED;
	scoped_str struct str lost = {0};
	int r = apply_item_make_parents(a, c->path);

	if (r == 0 && c->kind == CHANGE_MODE)
		r = apply_item_write_rights(a, i, &lost);
	else if (r == 0 && S_ISLNK(c->after.mode))
		r = write_link(a, i, replace);
	else if (r == 0)
		r = apply_item_write_file(a, i, replace, &lost);
	if (r == 0 && a->items[i].result == APPLY_WAITING)
		apply_work_set_done(a, i, &lost);
	return r;
}

int apply_item_remove(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	scoped_mem char *at = apply_work_now_at(a, apply_work_base(c));
	struct host_folder_seen seen;
	int r = host_folder_remove(
		a->host, at, S_ISDIR(c->before.mode), see(c, &seen) ? &seen : NULL);

	if (r == 0)
		apply_work_set_done(a, i, NULL);
	return r;
}

/* Folders that still hold what is to be renamed out of them get a second turn. */
int apply_item_remove_early(struct apply *a, size_t i)
{
	int r = apply_item_remove(a, i);

	return r == -ENOTEMPTY ? 0 : r;
}
