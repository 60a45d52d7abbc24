/* SPDX-License-Identifier: Apache-2.0 */
#include "view/file_touched.h"

#include <stdint.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/prefixes.h"
#include "view/file_access.h"

#define BELOW 16u /* beside a path's enum file_touch */

struct file_touched {
	struct map *paths;      /* to enum file_touch, and BELOW */
	struct prefixes *moved; /* those that are BELOW */
	struct slice *roots;
	size_t n_roots, bytes;
	bool is_unknown;
};

/* ---- events ---- */

static size_t read_open(const struct event *ev, struct file_touch_of *ret)
{
	if (!file_access_changes(ev) && !file_access_made(ev))
		return 0;
	ret[0] = (struct file_touch_of){.path = ev->path, .how = FILE_TOUCH_CONTENT};
	return 1;
}

static size_t read_rename(const struct event *ev, struct file_touch_of *ret)
{
	bool is_folder = !event_has(ev, directory) || ev->directory; /* not told: it may be one */

	ret[0] = (struct file_touch_of){ev->from, FILE_TOUCH_CONTENT, is_folder};
	ret[1] = (struct file_touch_of){ev->to, FILE_TOUCH_CONTENT, is_folder};
	return 2;
}

static size_t read_link(const struct event *ev, struct file_touch_of *ret)
{
	ret[0] = (struct file_touch_of){.path = ev->path, .how = FILE_TOUCH_CONTENT};
	ret[1] = (struct file_touch_of){.path = ev->target, .how = FILE_TOUCH_RIGHTS};
	return event_has(ev, symbolic) && ev->symbolic ? 1 : 2;
}

static size_t read_rights(const struct event *ev, struct file_touch_of *ret)
{
	ret[0] = (struct file_touch_of){.path = ev->path, .how = FILE_TOUCH_RIGHTS};
	return 1;
}

static size_t read_path(const struct event *ev, struct file_touch_of *ret)
{
	ret[0] = (struct file_touch_of){.path = ev->path, .how = FILE_TOUCH_CONTENT};
	return 1;
}

static const struct {
	enum event_kind kind;
	size_t (*read)(const struct event *ev, struct file_touch_of *ret);
} readers[] = {
	{EVENT_FILE_OPEN, read_open},
	{EVENT_FILE_RENAME, read_rename},
	{EVENT_FILE_DELETE, read_path},
	{EVENT_FILE_TRUNCATE, read_path},
	{EVENT_FILE_LINK, read_link},
	{EVENT_FILE_MODE, read_rights},
	{EVENT_DIR_CREATE, read_path},
};

size_t file_touch_read(const struct event *ev, struct file_touch_of ret[FILE_TOUCH_PATHS])
{
	if ((event_has(ev, result) && ev->result != 0) || file_access_is_nowhere(ev))
		return 0;
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (readers[i].kind == ev->kind)
			return readers[i].read(ev, ret);
	return 0;
}

/* ---- the table ---- */

struct file_touched *file_touched_new(void)
{
	struct file_touched *touched = new0(struct file_touched);

	touched->paths = map_new();
	touched->moved = prefixes_new();
	return touched;
}

void file_touched_free(struct file_touched *touched)
{
	if (!touched)
		return;
	map_free(touched->paths);
	prefixes_free(touched->moved);
	free(touched->roots);
	free(touched);
}

void file_touched_add_root(struct file_touched *touched, struct slice root)
{
	touched->roots = mem_grow(touched->roots, touched->n_roots + 1, sizeof(*touched->roots));
	touched->roots[touched->n_roots++] = root;
}

/* A folder above a root moves with all of it. */
static bool is_ours(const struct file_touched *touched, const struct file_touch_of *of)
{
	for (size_t i = 0; i < touched->n_roots; i++)
		if (path_is_beneath(of->path, touched->roots[i]) ||
			(of->below && path_is_beneath(touched->roots[i], of->path)))
			return true;
	return touched->n_roots == 0;
}

static void note(struct file_touched *touched, const struct file_touch_of *of)
{
	uintptr_t value;
	void **slot;

	if (of->path.len == 0 || of->path.p[0] != '/') {
		touched->is_unknown = true; /* it can be any of them */
		return;
	}
	if (!is_ours(touched, of))
		return;
	if (map_len(touched->paths) >= FILE_TOUCHED_MAX || touched->bytes >= FILE_TOUCHED_BYTES) {
		touched->is_unknown = true;
		return;
	}
	slot = map_slot(touched->paths, of->path);
	value = (uintptr_t)*slot;
	touched->bytes += value ? 0 : of->path.len;
	if ((value & (BELOW - 1)) < of->how)
		value = (value & BELOW) | of->how;
	if (of->below && !(value & BELOW))
		prefixes_add(touched->moved, of->path);
	if (of->below)
		value |= BELOW;
	*slot = (void *)value;
}

void file_touched_add(struct file_touched *touched, const struct event *ev)
{
	struct file_touch_of of[FILE_TOUCH_PATHS];
	size_t n;

	if (ev->kind == EVENT_TRACE_DROPPED || ev->kind == EVENT_TRACE_BLIND) {
		touched->is_unknown = true;
		return;
	}
	n = file_touch_read(ev, of);
	for (size_t i = 0; i < n; i++)
		note(touched, &of[i]);
}

static bool has_moved(const struct file_touched *touched, struct slice path)
{
	struct prefixes_walk walk = {.path = path};
	struct slice one;

	while (prefixes_next(touched->moved, &walk, &one))
		if ((uintptr_t)map_find(touched->paths, one) & BELOW)
			return true;
	return false;
}

enum file_touch file_touched_find(const struct file_touched *touched, struct slice path)
{
	uintptr_t value = (uintptr_t)map_find(touched->paths, path);
	enum file_touch how = (enum file_touch)(value & (BELOW - 1));

	if (how == FILE_TOUCH_CONTENT)
		return how;
	if (has_moved(touched, path))
		return FILE_TOUCH_CONTENT;
	return touched->is_unknown ? FILE_TOUCH_UNKNOWN : how;
}

bool file_touched_next(const struct file_touched *touched, size_t *i, struct slice *ret_path)
{
	void *how;

	return map_next(touched->paths, i, ret_path, &how);
}
