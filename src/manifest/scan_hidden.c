/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of a scan: lists what no longer shows at its place, and finds renames in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/beneath.h"
#include "manifest/journal.h"
#include "manifest/manifest_internal.h"
#include "util/mem.h"

#define DEPTH_MAX 300
#define ITEMS_MAX 1000000

/* A folder below whose contents are hidden. */
struct hidden_folder {
	struct scan *scan;
	int fd;
	const char *path, *base;
	struct map
		*by_handle; /* handle of a hidden file to its place in the list, counted from 1 */
	int depth;
	bool is_unseen;
};

static void list_one(const struct hidden_folder *in, const char *name, unsigned flags);

static int on_hidden_name(void *data, const char *name)
{
	const struct hidden_folder *in = data;

	if (in->scan->out->n_items >= ITEMS_MAX)
		return -E2BIG;
	list_one(in, name, in->is_unseen ? CHANGE_UNSEEN : 0);
	return 0;
}

static void list_folder(const struct hidden_folder *in, const char *name, const char *path,
	const char *base, unsigned flags)
{
	scoped_fd int fd = openat(in->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct hidden_folder folder = {.scan = in->scan,
		.fd = fd,
		.path = path,
		.base = base,
		.by_handle = in->by_handle,
		.depth = in->depth + 1,
		.is_unseen = fd < 0 || scan_is_unseen(in->scan, fd, NULL, flags & CHANGE_UNSEEN)};
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && folder.depth > DEPTH_MAX)
		r = -ENAMETOOLONG;
	if (r == 0)
		r = scan_each_name(fd, on_hidden_name, &folder);
	if (r < 0)
		scan_note_unseen(in->scan, path, r);
}

static void remember_handle(const struct hidden_folder *in, const char *name)
{
	unsigned char handle[UPPER_ORIGIN_MAX];
	size_t len = upper_handle(in->fd, name, handle);

	if (len > 0)
		*map_slot(in->by_handle, (struct slice){.p = (char *)handle, .len = len}) =
			(void *)(uintptr_t)in->scan->out->n_items;
}

static void list_one(const struct hidden_folder *in, const char *name, unsigned flags)
{
	scoped_mem char *path = scan_join(in->path, name), *base = scan_join(in->base, name);
	struct stat st;
	struct change *c;

	if (map_find(in->scan->moved, slice_of(base)))
		return;
	if (fstatat(in->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (!scan_is_gone(-errno))
			scan_note_unseen(in->scan, path, -errno);
		return;
	}
	c = scan_add(in->scan, CHANGE_REMOVED, mem_dup(path));
	c->flags |= flags;
	if (strcmp(path, base) != 0)
		c->from = mem_dup(base);
	scan_side_read(in->scan, &(struct scan_file){in->fd, name, path, &st},
		scan_skipped_len(path) == 0, &c->before);
	if (S_ISDIR(st.st_mode))
		list_folder(in, name, path, base, flags);
	else
		remember_handle(in, name);
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? mem_copy(path, (size_t)(slash - path)) : mem_dup("");
}

/* Hidden at this place because the folder around it was renamed: it is alive there. */
static bool lives_on(const struct scan *scan, const struct scan_hidden *hidden)
{
	struct slice at = slice_of(hidden->base);

	for (;;) {
		const char *now = map_find(scan->moved, at);

		if (now) {
			scoped_mem char *path = mem_printf("%s%s", now, hidden->base + at.len);

			return strcmp(path, hidden->path) != 0;
		}
		while (at.len > 0 && at.p[at.len - 1] != '/')
			at.len--;
		if (at.len == 0)
			return false;
		at.len--;
	}
}

static void list_hidden(struct scan *scan, const struct scan_hidden *hidden, struct map *by_handle)
{
	scoped_mem char *path = folder_of(hidden->path), *base = folder_of(hidden->base);
	const char *name;
	scoped_fd int fd = beneath_open_parent(scan->lower_fd, hidden->base, &name);
	struct hidden_folder in = {
		.scan = scan, .fd = fd, .path = path, .base = base, .by_handle = by_handle};

	if (fd >= 0)
		list_one(&in, name, hidden->flags);
	else
		scan_note_unseen(scan, hidden->path, fd);
}

static bool is_same_type(const struct change *a, const struct change *b)
{
	return ((a->after.mode ^ b->before.mode) & S_IFMT) == 0;
}

/* Turns an added and a removed file into a renamed one. */
static void join_rename(struct change *added, struct change *removed)
{
	added->kind = CHANGE_RENAMED;
	added->before = removed->before;
	added->flags |= removed->flags & CHANGE_UNSEEN;
	removed->before = (struct change_side){0};
	added->from = mem_dup(removed->from ? removed->from : removed->path);
	removed->kind = CHANGE_NONE;
}

/* An apply may have replaced what a renamed file was, and never what was at its own place. */
static bool is_by_apply(const struct scan *scan, const struct change *added)
{
	const struct journal *journal = scan->set->journal;
	int n = scan->layer->n;

	return journal_has_begun(journal, n) &&
	       (!journal_find_content(journal, n, slice_of(added->path)) ||
		       journal_find(journal, n, slice_of(added->path), true));
}

/* Renamed over what is there below: two changes, of which the removal may take what is left of the other. */
static void note_was(struct change *changed, const struct change *removed)
{
	if (removed->kind == CHANGE_REMOVED && is_same_type(changed, removed))
		changed->was = mem_dup(removed->from ? removed->from : removed->path);
}

static void find_rename(struct scan *scan, const struct scan_origin *o, struct map *by_handle)
{
	struct changes *out = scan->out;
	struct slice key = {.p = (const char *)o->handle, .len = o->len};
	uintptr_t place = (uintptr_t)map_find(by_handle, key);
	struct change *added = &out->items[o->item], *removed;

	if (added->kind != CHANGE_ADDED) {
		if (place > 0)
			note_was(added, &out->items[place - 1]);
		return;
	}
	if (place == 0) {
		/* Copied up from a file that the host has removed since, and no apply. */
		if (!added->data && !is_by_apply(scan, added) &&
			!upper_handle_is_alive(scan->lower_fd, o->handle, o->len))
			added->flags |= CHANGE_HOST_CHANGED;
		return;
	}
	removed = &out->items[place - 1];
	if (removed->kind != CHANGE_REMOVED || !is_same_type(added, removed))
		return;
	if (scan_skipped_len(added->path) > 0 || scan_skipped_len(removed->path) > 0)
		return;
	join_rename(added, removed);
	(void)scan_entry_differs(scan, added); /* its flags */
}

/* A file that an apply parked and that was to go somewhere else: to be renamed from there. Folders say so themselves. */
static void list_parked(struct scan *scan, const char *parked, struct map *by_handle)
{
	struct hidden_folder in = {.scan = scan, .fd = scan->lower_fd, .by_handle = by_handle};
	struct stat st;
	struct change *c;

	if (fstatat(in.fd, parked, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (!scan_is_gone(-errno))
			scan_note_unseen(scan, parked, -errno);
		return;
	}
	if (S_ISDIR(st.st_mode))
		return;
	c = scan_add(
		scan, CHANGE_REMOVED, journal_before(scan->set->journal, scan->layer->n, parked));
	c->from = mem_dup(parked);
	scan_side_read(scan, &(struct scan_file){in.fd, parked, c->path, &st},
		scan_skipped_len(c->path) == 0, &c->before);
	remember_handle(&in, parked);
}

void scan_hidden_list(struct scan *scan)
{
	const char *parked;

	struct map *by_handle = map_new();

	for (size_t i = 0; i < scan->n_hidden; i++)
		if (!lives_on(scan, &scan->hidden[i]))
			list_hidden(scan, &scan->hidden[i], by_handle);
	for (size_t i = 0; (parked = journal_next_parked(scan->set->journal, scan->layer->n, &i));)
		list_parked(scan, parked, by_handle);
	for (size_t i = 0; i < scan->n_origins; i++)
		find_rename(scan, &scan->origins[i], by_handle);
	map_free(by_handle);
}
