/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/watch_tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/mem.h"

#define SLOTS_MIN 256

/* ---- two tables, by name and by inode ---- */

static uint32_t mix(uint64_t v)
{
	v = (v ^ (v >> 31)) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(v >> 32);
}

static uint32_t hash_name(const struct watch_entry *parent, const char *name)
{
	uint64_t h = 0xcbf29ce484222325ULL ^ (uint64_t)(uintptr_t)parent;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3ULL;
	return mix(h);
}

static uint32_t hash_seen(const struct watch_seen *seen)
{
	return mix(seen->ino * 31 + seen->dev);
}

static struct watch_entry **name_link(struct watch_entry *entry)
{
	return &entry->name_next;
}

static struct watch_entry **ino_link(struct watch_entry *entry)
{
	return &entry->ino_next;
}

static uint32_t name_hash(const struct watch_entry *entry)
{
	return entry->name_hash;
}

static uint32_t ino_hash(const struct watch_entry *entry)
{
	return hash_seen(&entry->told);
}

/* How one table sees an entry. */
struct view {
	struct watch_entry **(*link)(struct watch_entry *entry);
	uint32_t (*hash)(const struct watch_entry *entry);
};
static const struct view by_name = {name_link, name_hash}, by_ino = {ino_link, ino_hash};

static void insert(struct watch_table *table, const struct view *view, struct watch_entry *entry)
{
	struct watch_entry **slot = &table->slots[view->hash(entry) & (table->n_slots - 1)];

	*view->link(entry) = *slot;
	*slot = entry;
}

static void grow(struct watch_table *table, const struct view *view)
{
	struct watch_table old = *table;

	table->n_slots = old.n_slots ? old.n_slots * 2 : SLOTS_MIN;
	table->slots = new0_n(struct watch_entry *, table->n_slots);
	for (size_t i = 0; i < old.n_slots; i++)
		for (struct watch_entry *e = old.slots[i], *next; e; e = next) {
			next = *view->link(e);
			insert(table, view, e);
		}
	free(old.slots);
}

static void table_add(struct watch_table *table, const struct view *view, struct watch_entry *entry)
{
	if (table->n >= table->n_slots)
		grow(table, view);
	insert(table, view, entry);
	table->n++;
}

static void table_remove(
	struct watch_table *table, const struct view *view, struct watch_entry *entry)
{
	struct watch_entry **at = &table->slots[view->hash(entry) & (table->n_slots - 1)];

	while (*at != entry)
		at = view->link(*at);
	*at = *view->link(entry);
	table->n--;
}

/* ---- names ---- */

void watch_tree_init(struct watch_tree *tree)
{
	*tree = (struct watch_tree){0};
	tree->root.name = mem_dup("");
	tree->root.wd = -1;
	tree->root.is_folder = true;
	tree->root.going.tag = WATCH_TAG_GOING;
}

void watch_tree_done(struct watch_tree *tree)
{
	while (tree->root.first)
		watch_tree_remove(tree, tree->root.first);
	watch_tree_tell(tree, &tree->root, &(struct watch_seen){0});
	free(tree->root.name);
	free(tree->names.slots);
	free(tree->inos.slots);
	settle_done(&tree->settle);
	*tree = (struct watch_tree){0};
}

struct watch_entry *watch_tree_find(
	const struct watch_tree *tree, const struct watch_entry *parent, const char *name)
{
	uint32_t hash = hash_name(parent, name);
	struct watch_entry *e =
		tree->names.n_slots ? tree->names.slots[hash & (tree->names.n_slots - 1)] : NULL;

	while (e && (e->name_hash != hash || e->parent != parent || strcmp(e->name, name) != 0))
		e = e->name_next;
	return e;
}

static void link_to(
	struct watch_tree *tree, struct watch_entry *entry, struct watch_entry *parent, char *name)
{
	entry->parent = parent;
	entry->name = name;
	entry->name_hash = hash_name(parent, name);
	entry->prev = NULL;
	entry->next = parent->first;
	if (parent->first)
		parent->first->prev = entry;
	parent->first = entry;
	table_add(&tree->names, &by_name, entry);
}

static void unlink_from(struct watch_tree *tree, struct watch_entry *entry)
{
	table_remove(&tree->names, &by_name, entry);
	if (entry->prev)
		entry->prev->next = entry->next;
	else
		entry->parent->first = entry->next;
	if (entry->next)
		entry->next->prev = entry->prev;
}

struct watch_entry *watch_tree_add(
	struct watch_tree *tree, struct watch_entry *parent, const char *name)
{
	struct watch_entry *entry = new0(struct watch_entry);

	entry->wd = -1;
	entry->going.tag = WATCH_TAG_GOING;
	link_to(tree, entry, parent, mem_dup(name));
	tree->n++;
	return entry;
}

static void remove_one(struct watch_tree *tree, struct watch_entry *entry)
{
	watch_tree_set_gone(tree, entry, false);
	watch_tree_tell(tree, entry, &(struct watch_seen){0});
	settle_drop(&tree->settle, &entry->item);
	settle_drop(&tree->settle, &entry->going);
	if (entry->from)
		entry->from->to = NULL;
	if (entry->to)
		entry->to->from = NULL;
	if (tree->on_free)
		tree->on_free(tree->arg, entry);
	unlink_from(tree, entry);
	tree->n--;
	free(entry->name);
	free(entry);
}

/* The deepest first, without a stack: folders inside may be nested as deep as one likes. */
void watch_tree_remove(struct watch_tree *tree, struct watch_entry *entry)
{
	struct watch_entry *e = entry, *parent;

	do {
		while (e->first)
			e = e->first;
		parent = e == entry ? NULL : e->parent;
		remove_one(tree, e);
		e = parent;
	} while (parent);
}

void watch_tree_move(struct watch_tree *tree, struct watch_entry *entry, struct watch_entry *parent,
	const char *name)
{
	char *new_name = mem_dup(name);

	watch_tree_set_gone(tree, entry, false);
	unlink_from(tree, entry);
	free(entry->name);
	link_to(tree, entry, parent, new_name);
}

/* ---- what is known of them ---- */

void watch_tree_tell(
	struct watch_tree *tree, struct watch_entry *entry, const struct watch_seen *seen)
{
	if (entry->told.mode)
		table_remove(&tree->inos, &by_ino, entry);
	entry->told = *seen;
	if (entry->told.mode)
		table_add(&tree->inos, &by_ino, entry);
}

struct watch_entry *watch_tree_find_inode(
	const struct watch_tree *tree, const struct watch_seen *seen, struct watch_entry *behind)
{
	struct watch_entry *e =
		behind               ? behind->ino_next
		: tree->inos.n_slots ? tree->inos.slots[hash_seen(seen) & (tree->inos.n_slots - 1)]
				     : NULL;

	while (e && (e->told.ino != seen->ino || e->told.dev != seen->dev))
		e = e->ino_next;
	return e;
}

void watch_tree_set_gone(struct watch_tree *tree, struct watch_entry *entry, bool is_gone)
{
	if (entry->is_gone == is_gone)
		return;
	entry->is_gone = is_gone;
	entry->is_moving = false;
	entry->parent->n_gone += is_gone ? 1 : (size_t)-1;
	if (entry->parent->n_gone == 0)
		settle_drop(&tree->settle, &entry->parent->going);
}

void watch_tree_add_path(const struct watch_entry *entry, struct str *out)
{
	size_t start = out->len, len = 0, at;

	for (const struct watch_entry *e = entry; e->parent; e = e->parent)
		len += strlen(e->name) + (e->parent->parent ? 1 : 0);
	str_reserve(out, len);
	at = start + len;
	for (const struct watch_entry *e = entry; e->parent; e = e->parent) {
		size_t n = strlen(e->name);

		at -= n;
		memcpy(out->p + at, e->name, n);
		if (e->parent->parent)
			out->p[--at] = '/';
	}
	out->len = start + len;
	out->p[out->len] = '\0';
}

struct watch_entry *watch_tree_walk(const struct watch_entry *folder, struct watch_entry *e)
{
	if (e->first)
		return e->first;
	while (e != folder && !e->next)
		e = e->parent;
	return e == folder ? NULL : e->next;
}

bool watch_tree_is_in(const struct watch_entry *entry, const struct watch_entry *folder)
{
	while (entry && entry != folder)
		entry = entry->parent;
	return entry;
}

size_t watch_tree_count(struct watch_entry *folder)
{
	size_t n = 0;

	for (struct watch_entry *e = folder; (e = watch_tree_walk(folder, e));)
		n += e->told.mode != 0;
	return n;
}
