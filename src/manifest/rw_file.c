/* SPDX-License-Identifier: Apache-2.0 */
/* One file of an rw folder: compared with what it was. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "manifest/rw_internal.h"
#include "util/mem.h"
#include "util/path.h"

static bool has_attributes(const struct snapshot_record *r)
{
	static const unsigned char none[DIGEST_LEN];

	return memcmp(r->attributes, none, sizeof(none)) != 0;
}

void rw_side_of(
	const struct snapshot *before, const struct snapshot_record *r, struct change_side *side)
{
	side->mode = r->mode;
	side->uid = r->uid;
	side->gid = r->gid;
	side->size = r->size;
	side->mtime_ns = r->mtime_ns;
	side->ctime_ns = r->ctime_ns;
	if (S_ISLNK(r->mode))
		side->target = mem_dup(before->text + r->target);
	if (!(snapshot_state(r) & SNAPSHOT_HASHED))
		return;
	digest_hex(r->sha256, side->sha256);
	if (has_attributes(r))
		digest_hex(r->attributes, side->attributes);
}

bool rw_is_as_it_was(const struct snapshot_record *r, const struct statx *st)
{
	return r->ino == st->stx_ino && r->size == (int64_t)st->stx_size &&
	       r->ctime_ns == folder_walk_ns(st->stx_ctime.tv_sec, st->stx_ctime.tv_nsec) &&
	       r->mtime_ns == folder_walk_ns(st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec) &&
	       r->mode == st->stx_mode && r->uid == st->stx_uid && r->gid == st->stx_gid &&
	       r->dev == makedev(st->stx_dev_major, st->stx_dev_minor);
}

enum rw_touch rw_touch_of(const struct rw_scan *scan, const char *path)
{
	scoped_str struct str absolute = {0};

	const struct rw_seen *seen = scan->query->seen;

	if (!seen)
		return RW_UNKNOWN;
	path_resolve(slice_of(scan->query->layer->guest), slice_of(path), &absolute);
	return seen->touch(seen->data, str_slice(&absolute));
}

static void to_stat(const struct statx *from, struct stat *st)
{
	*st = (struct stat){.st_mode = from->stx_mode,
		.st_uid = from->stx_uid,
		.st_gid = from->stx_gid,
		.st_size = (off_t)from->stx_size,
		.st_nlink = from->stx_nlink,
		.st_mtim = {from->stx_mtime.tv_sec, from->stx_mtime.tv_nsec},
		.st_ctim = {from->stx_ctime.tv_sec, from->stx_ctime.tv_nsec}};
}

void rw_file_read(struct rw_worker *w, const struct walk_folder *folder,
	const struct walk_entry *entry, bool hash, struct change *c)
{
	struct stat st;

	if (folder->fd == w->scan->query->root_fd && S_ISREG(entry->st->stx_mode)) {
		scan_side_read_open(&w->side, folder->fd, c->path, hash, &c->after);
		return; /* it was mounted alone */
	}
	to_stat(entry->st, &st);
	scan_side_read(&w->side, &(struct scan_file){folder->fd, entry->name, c->path, &st}, hash,
		&c->after);
}

bool rw_file_differs(struct change *c)
{
	const struct change_side *a = &c->before, *b = &c->after;

	if (a->uid != b->uid || a->gid != b->gid)
		c->flags |= CHANGE_OWNER;
	/* Known together with the hash. */
	if (S_ISREG(a->mode) && a->sha256[0] && strcmp(a->attributes, b->attributes) != 0)
		c->flags |= CHANGE_ATTRIBUTES;
	if (!S_ISLNK(b->mode) && ((a->mode ^ b->mode) & 07777))
		return true;
	return c->flags & (CHANGE_OWNER | CHANGE_ATTRIBUTES);
}

enum content { SAME, OTHER, UNSURE };

/* Without a hash of before: what its stamps and the observer say. */
static enum content guess(
	const struct rw_worker *w, const struct change *c, const struct walk_entry *entry)
{
	const struct snapshot_record *r = &w->scan->query->before->records[entry->old];

	if (rw_is_as_it_was(r, entry->st))
		return snapshot_state(r) & SNAPSHOT_RACY ? UNSURE : SAME;
	if (c->before.mtime_ns == c->after.mtime_ns && r->ino == entry->st->stx_ino &&
		rw_touch_of(w->scan, c->path) < RW_WRITTEN)
		return SAME; /* rights, or the number of its names */
	return UNSURE;
}

static enum content compare(
	const struct rw_worker *w, const struct change *c, const struct walk_entry *entry)
{
	const struct change_side *a = &c->before, *b = &c->after;

	if ((a->mode ^ b->mode) & S_IFMT)
		return OTHER;
	if (S_ISLNK(a->mode))
		return a->target && b->target && strcmp(a->target, b->target) == 0 ? SAME : OTHER;
	if (!S_ISREG(a->mode))
		return SAME;
	if (a->size != b->size)
		return OTHER;
	if (!a->sha256[0])
		return guess(w, c, entry);
	return b->sha256[0] && strcmp(a->sha256, b->sha256) == 0 ? SAME : OTHER;
}

void rw_file_compare(
	struct rw_worker *w, const struct walk_folder *folder, const struct walk_entry *entry)
{
	const struct rw_scan *scan = w->scan;
	const struct snapshot_record *r = &scan->query->before->records[entry->old];
	struct change *c =
		changes_add(w->side.out, CHANGE_CHANGED, scan_join(folder->path, entry->name));
	bool is_counted = scan_skipped_len(c->path) > 0;
	scoped_str struct str was = {0};
	enum content content;

	if ((folder->mark & RW_MARK_MOVED) && snapshot_path(scan->query->before, entry->old, &was))
		c->from = str_take(&was);
	rw_side_of(scan->query->before, r, &c->before);
	rw_file_read(w, folder, entry, !is_counted || c->before.sha256[0], c);
	content = compare(w, c, entry);
	if (content == SAME)
		c->kind = rw_file_differs(c) ? CHANGE_MODE : CHANGE_NONE;
	else
		(void)rw_file_differs(c); /* only its flags are of use */
	if (content == UNSURE)
		c->flags |= CHANGE_UNSURE;
}
