/* SPDX-License-Identifier: Apache-2.0 */
/* One file on one side of a comparison. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/manifest_internal.h"
#include "util/clock.h"
#include "util/scoped.h"

static void take_stat(const struct scan *scan, const struct scan_file *file, const struct stat *st,
	struct change_side *side)
{
	const struct change_layer *l = scan->layer;

	side->mode = st->st_mode;
	side->uid = file->layer ? stack_id(l, file->layer, &l->uid_map, st->st_uid) : st->st_uid;
	side->gid = file->layer ? stack_id(l, file->layer, &l->gid_map, st->st_gid) : st->st_gid;
	side->size = st->st_size;
	side->inode = st->st_ino;
	side->has_other_names = st->st_nlink > 1;
	side->mtime_ns = clock_ns(st->st_mtim);
	side->ctime_ns = clock_ns(st->st_ctim);
}

static int read_open(struct scan *scan, int fd, bool hash, struct change_side *side)
{
	int r = content_attributes(fd, side->attributes);

	side->has_capabilities = content_has_capabilities(fd);
	if (r < 0 || !hash)
		return r;
	return content_hash(fd, &scan->budget, side->sha256);
}

static int read_regular(
	struct scan *scan, const struct scan_file *file, bool hash, struct change_side *side)
{
	struct stat st;
	scoped_fd int fd = content_open(file->dirfd, file->name, &st);

	if (fd < 0)
		return fd;
	if (file->needs_data && upper_lacks_data(fd) > 0)
		return -ENODATA; /* put there since the name was looked at */
	take_stat(scan, file, &st, side);
	return read_open(scan, fd, hash, side);
}

void scan_side_read(
	struct scan *scan, const struct scan_file *file, bool hash, struct change_side *side)
{
	int r = 0;

	take_stat(scan, file, file->st, side);
	if (scan->count_only)
		return;
	if (S_ISREG(file->st->st_mode))
		r = read_regular(scan, file, hash, side);
	else if (S_ISLNK(file->st->st_mode))
		r = content_read_link(file->dirfd, file->name, &side->target);
	if (r < 0 && r != -ENOENT)
		scan_note_unread(scan, file->path, r);
}

void scan_side_read_open(
	struct scan *scan, int fd, const char *path, bool hash, struct change_side *side)
{
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0) {
		take_stat(scan, &(struct scan_file){.dirfd = -1}, &st, side);
		r = read_open(scan, fd, hash, side);
	}
	if (r < 0)
		scan_note_unread(scan, path, r);
}

void scan_side_read_data(struct scan *scan, const struct scan_data *data, const char *path,
	bool hash, struct change_side *side, int64_t *ret_ctime_ns)
{
	const char *name;
	scoped_fd int dirfd = beneath_open_parent(data->root_fd, data->path, &name);
	scoped_fd int fd = -1;
	struct stat st;
	int r = dirfd;

	side->sha256[0] = '\0';
	if (dirfd >= 0) {
		fd = content_open(dirfd, name, &st);
		r = fd;
	}
	if (fd >= 0) {
		side->size = st.st_size;
		*ret_ctime_ns = clock_ns(st.st_ctim);
		r = hash && !scan->count_only ? content_hash(fd, &scan->budget, side->sha256) : 0;
	}
	if (r < 0)
		scan_note_unread(scan, path, r);
}

static bool is_seen_as(const struct change_layer *layer, const struct change_set_map *map,
	uint32_t below, uint32_t up)
{
	uint32_t inner = change_set_inner_id(layer, map, below);

	/* An id with no place inside is nobody's there, and nothing can give or take it. */
	return inner >= CHANGE_SET_ID_RANGE || up == layer->id_base + inner;
}

unsigned scan_side_compare_owner(
	const struct scan *scan, const struct change_side *before, const struct change_side *after)
{
	const struct change_layer *l = scan->layer;

	if (is_seen_as(l, &l->uid_map, before->uid, after->uid) &&
		is_seen_as(l, &l->gid_map, before->gid, after->gid))
		return 0;
	return CHANGE_OWNER;
}

void scan_side_state(const struct change *change, uint32_t id_base, char ret[DIGEST_HEX_SIZE])
{
	const struct change_side *side = &change->after;
	scoped_str struct str text = {0};

	if (change->kind == CHANGE_REMOVED) {
		str_puts(&text, "removed");
		if (!S_ISREG(change->before.mode))
			str_printf(&text, " %o", change->before.mode & S_IFMT);
	} else {
		str_printf(&text, "%o %u %u %s %s ", side->mode, side->uid - id_base,
			side->gid - id_base, side->sha256, side->attributes);
		if (S_ISREG(side->mode) && !side->sha256[0])
			str_printf(&text, "%lld %lld ", (long long)side->size,
				(long long)side->mtime_ns);
		if (side->target)
			str_puts(&text, side->target);
		str_putc(&text, '\0');
		if (change->kind == CHANGE_RENAMED)
			str_puts(&text, change->from);
	}
	digest_of(text.p, text.len, ret);
}
