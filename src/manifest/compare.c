/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/compare.h"

#include <string.h>
#include <sys/stat.h>

#include "manifest/manifest_words.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

enum kind { ADDED, REMOVED, CHANGED, RENAMED, MODE_CHANGED, N_KINDS };
static const char *const kind_words[N_KINDS] = {
	"added", "removed", "changed", "renamed", "mode_changed"};

struct difference {
	enum kind kind;
	const struct tree_entry *before, *after; /* NULL: not there */
};

struct comparison {
	const char *root;
	bool has_sums_only;
	struct difference *items;
	size_t n, n_unread;
};

static void note(struct comparison *c, enum kind kind, const struct tree_entry *before,
	const struct tree_entry *after)
{
	c->items = mem_grow(c->items, c->n + 1, sizeof(*c->items));
	c->items[c->n++] = (struct difference){kind, before, after};
}

static bool is_unread(const struct tree_entry *entry)
{
	return entry->problem == TREE_CHANGED || entry->problem == TREE_HOLES ||
	       entry->problem == TREE_UNREADABLE;
}

static bool is_same_content(const struct tree_entry *a, const struct tree_entry *b)
{
	if ((a->mode ^ b->mode) & S_IFMT)
		return false;
	if (S_ISLNK(a->mode))
		return strcmp(a->target, b->target) == 0;
	if (S_ISCHR(a->mode) || S_ISBLK(a->mode))
		return a->major == b->major && a->minor == b->minor;
	return !S_ISREG(a->mode) || strcmp(a->sha256, b->sha256) == 0;
}

static bool is_same_rights(const struct tree_entry *a, const struct tree_entry *b)
{
	return (S_ISLNK(a->mode) || a->mode == b->mode) && a->uid == b->uid && a->gid == b->gid &&
	       strcmp(a->attributes, b->attributes) == 0;
}

static void compare_pair(
	struct comparison *c, const struct tree_entry *before, const struct tree_entry *after)
{
	if (is_unread(before) || is_unread(after)) {
		c->n_unread++;
	} else if (S_ISDIR(before->mode) != S_ISDIR(after->mode)) {
		note(c, REMOVED, before, NULL);
		note(c, ADDED, NULL, after);
	} else if (!is_same_content(before, after)) {
		note(c, CHANGED, before, after);
	} else if (!c->has_sums_only && before->problem == TREE_WHOLE &&
		   after->problem == TREE_WHOLE && !is_same_rights(before, after)) {
		note(c, MODE_CHANGED, before, after);
	}
}

/* There before, or after, and not at the other time. */
static void add_one(struct comparison *c, enum kind kind, const struct tree_entry *entry)
{
	if (c->has_sums_only && !S_ISREG(entry->mode))
		return;
	note(c, kind, kind == REMOVED ? entry : NULL, kind == REMOVED ? NULL : entry);
}

static void walk(struct comparison *c, const struct tree *before, const struct tree *after)
{
	size_t i = 0, k = 0;

	while (i < before->n || k < after->n) {
		int order = i == before->n  ? 1
		            : k == after->n ? -1
		                            : strcmp(before->items[i].path, after->items[k].path);

		if (order == 0)
			compare_pair(c, &before->items[i++], &after->items[k++]);
		else if (order < 0)
			add_one(c, REMOVED, &before->items[i++]);
		else
			add_one(c, ADDED, &after->items[k++]);
	}
}

/* ---- what is gone here and there with the same content elsewhere was renamed ---- */

static bool can_be_renamed(const struct tree_entry *entry)
{
	return S_ISREG(entry->mode) && entry->size > 0 && entry->sha256[0];
}

/* Of several with the same content none: which became which is not known. */
static void find_renames(struct comparison *c)
{
	scoped(map) struct map *gone = map_new();
	static struct difference several;

	for (size_t i = 0; i < c->n; i++) {
		struct difference *d = &c->items[i];
		void **slot;

		if (d->kind != REMOVED || !can_be_renamed(d->before))
			continue;
		slot = map_slot(gone, slice_of(d->before->sha256));
		*slot = *slot ? (void *)&several : (void *)d;
	}
	for (size_t i = 0; i < c->n; i++) {
		struct difference *d = &c->items[i], *from;
		void **slot;

		if (d->kind != ADDED || !can_be_renamed(d->after))
			continue;
		slot = map_slot(gone, slice_of(d->after->sha256));
		from = *slot;
		if (!from || from == &several)
			continue;
		d->kind = RENAMED;
		d->before = from->before;
		from->kind = N_KINDS; /* told with the other */
		*slot = NULL;
	}
}

/* ---- as JSON ---- */

static void write_path(struct jsonw *j, const char *key, const char *root, const char *path)
{
	scoped_str struct str absolute = {0};

	path_resolve(slice_of(root), slice_of(path), &absolute);
	jsonw_kslice(j, key, str_slice(&absolute));
}

static void write_rights(struct jsonw *j, const struct tree_entry *a, const struct tree_entry *b)
{
	if (!S_ISLNK(b->mode) && ((a->mode ^ b->mode) & 07777)) {
		manifest_write_mode(j, "mode_before", a->mode);
		manifest_write_mode(j, "mode", b->mode);
	}
	if (a->uid != b->uid || a->gid != b->gid) {
		manifest_write_owner(j, "owner_before", a->uid, a->gid);
		manifest_write_owner(j, "owner", b->uid, b->gid);
	}
	if (strcmp(a->attributes, b->attributes) != 0)
		jsonw_kbool(j, "attributes", true);
}

static void write_difference(
	struct jsonw *j, const struct comparison *c, const struct difference *d)
{
	const struct tree_entry *a = d->before, *b = d->after, *e = b ? b : a;

	jsonw_object(j);
	write_path(j, "path", c->root, e->path);
	if (d->kind == RENAMED)
		write_path(j, "from", c->root, a->path);
	jsonw_ktext(j, "before", a && a->sha256[0] ? a->sha256 : NULL);
	jsonw_ktext(j, "after", b && b->sha256[0] ? b->sha256 : NULL);
	if (a && b && ((a->mode ^ b->mode) & S_IFMT))
		jsonw_ktext(j, "type_before", manifest_type_word(a->mode));
	if (!S_ISREG(e->mode) || (a && !S_ISREG(a->mode)))
		jsonw_ktext(j, "type", manifest_type_word(e->mode));
	if (a && a->target)
		jsonw_ktext(j, "target_before", a->target);
	if (b && b->target)
		jsonw_ktext(j, "target", b->target);
	if (a && b && !c->has_sums_only)
		write_rights(j, a, b);
	jsonw_object_end(j);
}

static void write_kinds(struct jsonw *j, const struct comparison *c)
{
	for (int kind = 0; kind < N_KINDS; kind++) {
		jsonw_key(j, kind_words[kind]);
		jsonw_array(j);
		for (size_t i = 0; i < c->n; i++)
			if (c->items[i].kind == (enum kind)kind)
				write_difference(j, c, &c->items[i]);
		jsonw_array_end(j);
	}
}

static size_t count(const struct comparison *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->items[i].kind != N_KINDS;
	return n;
}

size_t compare_write(
	struct str *out, const char *root, const struct manifest *before, const struct tree *after)
{
	struct comparison c = {.root = root, .has_sums_only = before->has_sums_only};
	struct jsonw j = jsonw_to(out);
	size_t n;

	walk(&c, &before->tree, after);
	find_renames(&c);
	jsonw_object(&j);
	jsonw_ktext(&j, "root", root);
	write_kinds(&j, &c);
	if (c.n_unread > 0) {
		scoped_mem char *text = mem_printf("%zu of them at one of both times", c.n_unread);

		jsonw_ktext(&j, "unread", text);
	}
	jsonw_object_end(&j);
	n = count(&c);
	free(c.items);
	return n;
}
