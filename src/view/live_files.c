/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of names. One table finds a child by its parent's number and its name, so moving a subtree changes
 * one key. */
#include "view/live_files.h"

#include <stdint.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

#define LEVELS_MAX \
	8192 /* folders within folders; what moves end up deeper shows without its upper ones */

struct live_file {
	struct live_file *parent, *first, *prev, *next; /* siblings */
	struct live_file *newer, *older;                /* all files, newest first */
	uint64_t number;
	struct slice name; /* owned */
	bool has_facts;
	struct live_facts facts;
};

struct live_files {
	struct map *children; /* parent's number and name to struct live_file */
	struct live_file root;
	struct live_file *newest;
	uint64_t n_made;
	struct str key;
};

struct live_files *live_files_new(void)
{
	struct live_files *live = new0(struct live_files);

	live->children = map_new();
	return live;
}

static void free_file(struct live_file *file)
{
	idset_done(&file->facts.processes);
	idset_done(&file->facts.execs);
	free((char *)file->name.p);
	free(file);
}

void live_files_free(struct live_files *live)
{
	if (!live)
		return;
	for (struct live_file *file = live->newest, *older; file; file = older) {
		older = file->older;
		free_file(file);
	}
	idset_done(&live->root.facts.processes);
	idset_done(&live->root.facts.execs);
	map_free(live->children);
	str_done(&live->key);
	free(live);
}

static struct slice child_key(
	struct live_files *live, const struct live_file *parent, struct slice name)
{
	str_reset(&live->key);
	str_add(&live->key, &parent->number, sizeof(parent->number));
	str_add(&live->key, name.p, name.len);
	return str_slice(&live->key);
}

/* The next part of path at *at; empty at the end. */
static struct slice next_part(struct slice path, size_t *at)
{
	struct slice part = {0};

	while (*at < path.len && path.p[*at] == '/')
		++*at;
	part.p = path.p + *at;
	while (*at < path.len && path.p[*at] != '/') {
		++*at;
		part.len++;
	}
	return part;
}

static struct live_file *find(struct live_files *live, struct slice path)
{
	struct live_file *file = &live->root;
	size_t at = 0;

	for (struct slice part; file && (part = next_part(path, &at)).len;)
		file = map_find(live->children, child_key(live, file, part));
	return file == &live->root ? NULL : file;
}

static void link_child(struct live_files *live, struct live_file *parent, struct live_file *file)
{
	*map_slot(live->children, child_key(live, parent, file->name)) = file;
	file->parent = parent;
	file->prev = NULL;
	file->next = parent->first;
	if (parent->first)
		parent->first->prev = file;
	parent->first = file;
}

static void unlink_child(struct live_files *live, struct live_file *file)
{
	map_remove(live->children, child_key(live, file->parent, file->name));
	if (file->prev)
		file->prev->next = file->next;
	else
		file->parent->first = file->next;
	if (file->next)
		file->next->prev = file->prev;
	file->parent = NULL;
}

static struct live_file *make_child(
	struct live_files *live, struct live_file *parent, struct slice name)
{
	struct live_file *file = new0(struct live_file);

	file->number = ++live->n_made;
	file->name = (struct slice){.p = mem_copy(name.p, name.len), .len = name.len};
	file->older = live->newest;
	if (live->newest)
		live->newest->newer = file;
	live->newest = file;
	link_child(live, parent, file);
	return file;
}

static void drop(struct live_files *live, struct live_file *file)
{
	unlink_child(live, file);
	if (file->newer)
		file->newer->older = file->older;
	else
		live->newest = file->older;
	if (file->older)
		file->older->newer = file->newer;
	free_file(file);
}

/* Drops file and what lies below it, without recursion: the sandbox chose the depth. */
static void drop_all(struct live_files *live, struct live_file *top)
{
	struct live_file *file = top;

	for (;;) {
		struct live_file *parent = file->parent;
		bool is_top = file == top;

		if (file->first) {
			file = file->first;
			continue;
		}
		drop(live, file);
		if (is_top)
			return;
		file = parent;
	}
}

/* The folder that path lies in, made where it is not there, and the last part of path. */
static struct live_file *make_folder(
	struct live_files *live, struct slice path, struct slice *ret_name)
{
	struct live_file *folder = &live->root;
	size_t at = 0;
	struct slice part = next_part(path, &at);

	for (struct slice more; (more = next_part(path, &at)).len; part = more) {
		struct live_file *child = map_find(live->children, child_key(live, folder, part));

		folder = child ? child : make_child(live, folder, part);
	}
	*ret_name = part;
	return folder;
}

struct live_facts *live_files_get(struct live_files *live, struct slice path)
{
	struct slice name;
	struct live_file *folder = make_folder(live, path, &name), *file;

	if (name.len == 0)
		return &live->root.facts; /* of nobody: the root is never told */
	file = map_find(live->children, child_key(live, folder, name));
	if (!file)
		file = make_child(live, folder, name);
	file->has_facts = true;
	return &file->facts;
}

struct live_facts *live_files_find(struct live_files *live, struct slice path)
{
	struct live_file *file = find(live, path);

	return file && file->has_facts ? &file->facts : NULL;
}

void live_files_delete(struct live_files *live, struct slice path)
{
	struct live_file *file = find(live, path);

	if (file)
		drop_all(live, file);
}

/* No kernel moves a folder into itself, or over one that it lies in. */
static bool is_nested(struct slice a, struct slice b)
{
	return path_is_beneath(a, b) || path_is_beneath(b, a);
}

/* Puts a file that is linked nowhere under its new name. */
static void place(struct live_files *live, struct live_file *file, struct slice to)
{
	struct slice name;
	struct live_file *folder = make_folder(live, to, &name);

	free((char *)file->name.p);
	file->name = (struct slice){.p = mem_copy(name.p, name.len), .len = name.len};
	link_child(live, folder, file);
}

void live_files_move(struct live_files *live, struct slice from, struct slice to)
{
	struct live_file *file, *target;

	if (is_nested(from, to))
		return;
	file = find(live, from);
	target = find(live, to);
	if (target)
		drop_all(live, target);
	if (!file)
		return;
	unlink_child(live, file);
	place(live, file, to);
}

void live_files_swap(struct live_files *live, struct slice a, struct slice b)
{
	struct live_file *at_a, *at_b;

	if (is_nested(a, b))
		return;
	at_a = find(live, a);
	at_b = find(live, b);
	if (at_a)
		unlink_child(live, at_a);
	if (at_b)
		unlink_child(live, at_b);
	if (at_a)
		place(live, at_a, b);
	if (at_b)
		place(live, at_b, a);
}

static void add_path(struct str *path, const struct live_file *file)
{
	const struct live_file *above[LEVELS_MAX];
	size_t n = 0;

	for (; file->parent && n < LEVELS_MAX; file = file->parent)
		above[n++] = file;
	str_reset(path);
	while (n > 0) {
		const struct live_file *part = above[--n];

		str_putc(path, '/');
		str_add(path, part->name.p, part->name.len);
	}
}

bool live_files_next(const struct live_files *live, void **at, struct str *path,
	const struct live_facts **ret_facts)
{
	const struct live_file *file = *at ? ((const struct live_file *)*at)->older : live->newest;

	while (file && !file->has_facts)
		file = file->older;
	if (!file)
		return false;
	add_path(path, file);
	*at = (void *)file;
	*ret_facts = &file->facts;
	return true;
}
