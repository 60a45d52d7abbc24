/* SPDX-License-Identifier: Apache-2.0 */
/* One folder of an upper: where it came from. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/beneath.h"
#include "manifest/journal.h"
#include "manifest/manifest_internal.h"
#include "util/mem.h"

static void note_folder(
	struct scan *scan, const struct scan_entry *e, enum change_kind kind, const char *from)
{
	struct change *c = scan_add(scan, kind, mem_dup(e->path));

	if (from)
		c->from = mem_dup(from);
	if (kind != CHANGE_ADDED)
		scan_side_read(scan, &(struct scan_file){-1, e->name, e->path, &e->low}, false,
			&c->before);
	scan_side_read(scan, &(struct scan_file){-1, e->name, e->path, &e->at.up.st, e->at.layer},
		false, &c->after);
	if (kind == CHANGE_ADDED)
		return;
	if (!scan_entry_differs(scan, c) && kind == CHANGE_MODE)
		c->kind = CHANGE_NONE;
}

/* Once an apply was at work, what stands at the old place may be what it put there: another folder, and not to be moved. */
static bool is_by_apply(const struct scan *scan, const struct scan_entry *e, const char *moved)
{
	scoped_fd int fd = -1;

	if (!journal_has_begun(scan->set->journal, scan->layer->n))
		return false;
	fd = beneath_open(scan->lower_fd, moved, O_RDONLY | O_DIRECTORY);
	return fd >= 0 && scan_is_unseen(scan, fd, &e->at.folder, false);
}

/* A folder that a redirect brought here; *ret NULL where none did, or where it is at its own place (again). */
static int find_moved(struct scan *scan, const struct scan_frame *f, const struct scan_entry *e,
	struct stat *ret_st, char **ret)
{
	scoped_mem char *moved = NULL;
	int r = 0;

	*ret = NULL;
	if (e->at.up.redirect)
		r = scan_entry_follow(scan, f, e->at.up.redirect, S_IFDIR, &moved);
	if (r < 0 || !moved)
		return r;
	r = beneath_stat(scan->lower_fd, moved, ret_st);
	if (r == 0 && !is_by_apply(scan, e, moved))
		*ret = take(&moved);
	return scan_is_gone(r) ? 0 : r;
}

/* A folder from elsewhere below: what it hides here is gone, what it holds is compared with its old place. */
static void place_moved(struct scan *scan, const struct scan_frame *f, struct scan_entry *e,
	const char *moved, const struct stat *st, bool outside)
{
	bool hid_folder = e->base && S_ISDIR(e->low.st_mode);

	void **place = map_slot(scan->moved, slice_of(moved));

	free(*place);
	*place = mem_dup(e->path);
	if (outside || scan->only_moves)
		return;
	if (e->base)
		scan_entry_hide(scan, e, "",
			CHANGE_REPLACED | (hid_folder ? CHANGE_QUIET : 0) |
				(f->is_unseen ? CHANGE_UNSEEN : 0));
	e->low = *st;
	note_folder(scan, e, CHANGE_RENAMED, moved);
}

/* The folder below was renamed away, and this is a new one under its old name. */
static bool is_elsewhere(const struct scan *scan, const struct scan_entry *e)
{
	const char *now = map_find(scan->moved, slice_of(e->base));

	return now && strcmp(now, e->path) != 0;
}

char *scan_folder_place(struct scan *scan, const struct scan_frame *f, struct scan_entry *e,
	bool outside, bool *ret_merged)
{
	struct stat st;
	scoped_mem char *moved = NULL;
	int r = find_moved(scan, f, e, &st, &moved);

	if (r < 0)
		scan_note_unseen(scan, e->path, r);
	*ret_merged = true;
	if (moved && (!e->base || strcmp(moved, e->base) != 0)) {
		place_moved(scan, f, e, moved, &st, outside);
		return take(&moved);
	}
	*ret_merged = moved || (f->merged && !e->at.up.opaque && !e->at.up.redirect);
	if (scan->only_moves)
		return e->base && S_ISDIR(e->low.st_mode) ? mem_dup(e->base) : NULL;
	if (e->base && S_ISDIR(e->low.st_mode) && !is_elsewhere(scan, e)) {
		if (!outside)
			note_folder(scan, e, CHANGE_MODE,
				strcmp(e->base, e->path) != 0 ? e->base : NULL);
		return mem_dup(e->base);
	}
	if (e->base && !outside)
		scan_entry_hide(scan, e, "", CHANGE_REPLACED | (f->is_unseen ? CHANGE_UNSEEN : 0));
	if (!outside)
		note_folder(scan, e, CHANGE_ADDED, NULL);
	*ret_merged = false;
	return NULL;
}
