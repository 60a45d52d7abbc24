/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/changes_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "manifest/apply_plan.h"
#include "manifest/manifest_words.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"

#define OTHER_ID  65534 /* how an id that has no place inside looks there */
#define NOTED_MAX 64    /* files named of one skipped folder */

static const char *const kind_words[CHANGE_N_KINDS] = {
	[CHANGE_ADDED] = "added",
	[CHANGE_REMOVED] = "removed",
	[CHANGE_CHANGED] = "changed",
	[CHANGE_RENAMED] = "renamed",
	[CHANGE_MODE] = "mode_changed",
};

static void write_hash(struct jsonw *j, const char *key, const struct change_side *side)
{
	jsonw_ktext(j, key, side->sha256[0] ? side->sha256 : NULL);
}

static uint32_t inner_below(
	const struct changes *changes, const struct change_set_map *map, uint32_t id)
{
	uint32_t inner = change_set_inner_id(changes->layer, map, id);

	return inner < CHANGE_SET_ID_RANGE ? inner : OTHER_ID;
}

static uint32_t inner_above(
	const struct changes *changes, const struct change_set_map *map, uint32_t id)
{
	/* Written through: both sides are the host's own files. */
	uint32_t inner = changes->rw ? change_set_inner_id(changes->layer, map, id)
	                             : id - changes->layer->id_base;

	return inner < CHANGE_SET_ID_RANGE ? inner : OTHER_ID;
}

static void write_path(
	struct jsonw *j, const char *key, const struct changes *changes, struct slice path)
{
	scoped_str struct str absolute = {0};

	path_resolve(slice_of(changes->root), path, &absolute);
	jsonw_kslice(j, key, str_slice(&absolute));
}

static void write_type(struct jsonw *j, const struct change *c)
{
	mode_t before = c->before.mode, after = c->after.mode;

	if (before && after && ((before ^ after) & S_IFMT)) {
		jsonw_ktext(j, "type_before", manifest_type_word(before));
		jsonw_ktext(j, "type", manifest_type_word(after));
	} else if (!S_ISREG(after ? after : before)) {
		jsonw_ktext(j, "type", manifest_type_word(after ? after : before));
	}
	if (c->before.target)
		jsonw_kslice(j, "target_before", slice_of(c->before.target));
	if (c->after.target)
		jsonw_kslice(j, "target", slice_of(c->after.target));
}

static void write_rights(struct jsonw *j, const struct changes *changes, const struct change *c)
{
	const struct change_side *a = &c->before, *b = &c->after;

	if (a->mode && b->mode && !S_ISLNK(b->mode) && ((a->mode ^ b->mode) & 07777)) {
		manifest_write_mode(j, "mode_before", a->mode);
		manifest_write_mode(j, "mode", b->mode);
	} else if (!a->mode && (b->mode & 06000)) {
		manifest_write_mode(j, "mode", b->mode);
	}
	if (c->flags & CHANGE_OWNER) {
		const struct change_layer *l = changes->layer;

		manifest_write_owner(j, "owner_before", inner_below(changes, &l->uid_map, a->uid),
			inner_below(changes, &l->gid_map, a->gid));
		manifest_write_owner(j, "owner", inner_above(changes, &l->uid_map, b->uid),
			inner_above(changes, &l->gid_map, b->gid));
	}
	if (c->flags & CHANGE_ATTRIBUTES)
		jsonw_kbool(j, "attributes", true);
	if (c->after.has_capabilities && !c->before.has_capabilities)
		jsonw_kbool(j, "capabilities", true);
}

static void write_change(struct jsonw *j, const struct changes *changes, const struct change *c)
{
	jsonw_object(j);
	write_path(j, "path", changes, slice_of(changes_shown_path(c)));
	if (c->from && c->kind != CHANGE_REMOVED)
		write_path(j, "from", changes, slice_of(c->from));
	write_hash(j, "before", &c->before);
	write_hash(j, "after", &c->after);
	write_type(j, c);
	write_rights(j, changes, c);
	if (c->flags & CHANGE_UNREAD)
		jsonw_kbool(j, "unread", true);
	if (c->flags & CHANGE_UNSURE)
		jsonw_kbool(j, "unsure", true);
	/* Who made it is told from the events, by whoever reads this (docs/change-sets.md). */
	jsonw_klist(j, "execs", NULL, 0);
	jsonw_klist(j, "processes", NULL, 0);
	jsonw_object_end(j);
}

static void write_kind(struct jsonw *j, const struct changes *changes, enum change_kind kind)
{
	jsonw_key(j, kind_words[kind]);
	jsonw_array(j);
	for (size_t i = 0; i < changes->n_items; i++)
		if (changes->items[i].kind == kind && changes_is_listed(&changes->items[i]))
			write_change(j, changes, &changes->items[i]);
	jsonw_array_end(j);
}

static void write_note(
	struct jsonw *j, const struct changes *changes, const struct change *c, const char *reason)
{
	jsonw_object(j);
	write_path(j, "path", changes, slice_of(changes_shown_path(c)));
	jsonw_ktext(j, "change", kind_words[c->kind]);
	if (reason)
		jsonw_ktext(j, "reason", reason);
	jsonw_object_end(j);
}

/* The changes of one skipped folder, from the first on. Returns how many there are. */
static size_t write_skipped_folder(struct jsonw *j, const struct changes *changes, size_t first)
{
	const struct change *c = &changes->items[first];
	struct slice folder = {.p = c->path, .len = c->skipped_len};
	size_t counts[CHANGE_N_KINDS] = {0}, n = 0, total = 0, noted = 0;

	for (size_t i = first; i < changes->n_items; i++, n++) {
		const struct change *o = &changes->items[i];

		if (!slice_eq((struct slice){.p = o->path, .len = o->skipped_len}, folder))
			break;
		counts[o->kind] += !(o->flags & CHANGE_QUIET);
		total += !(o->flags & CHANGE_QUIET);
	}
	jsonw_object(j);
	write_path(j, "path", changes, folder);
	jsonw_kint(j, "count", (int64_t)total);
	for (enum change_kind k = CHANGE_ADDED; k < CHANGE_N_KINDS; k++)
		jsonw_kint(j, kind_words[k], (int64_t)counts[k]);
	jsonw_key(j, "notable");
	jsonw_array(j);
	for (size_t i = first; i < first + n && noted < NOTED_MAX; i++) {
		if (!(changes->items[i].flags & CHANGE_RUNS_ON_HOST))
			continue;
		write_note(
			j, changes, &changes->items[i], changes_runs_on_host(&changes->items[i]));
		noted++;
	}
	jsonw_array_end(j);
	jsonw_object_end(j);
	return n;
}

static void write_skipped(struct jsonw *j, const struct changes *changes)
{
	jsonw_key(j, "skipped");
	jsonw_array(j);
	for (size_t i = 0; i < changes->n_items;) {
		if (changes->items[i].flags & CHANGE_SKIPPED)
			i += write_skipped_folder(j, changes, i);
		else
			i++;
	}
	jsonw_array_end(j);
}

static void write_flagged(
	struct jsonw *j, const struct changes *changes, const char *key, unsigned flag)
{
	jsonw_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];

		if (c->flags & flag)
			write_note(j, changes, c,
				flag == CHANGE_RUNS_ON_HOST ? changes_runs_on_host(c) : NULL);
	}
	jsonw_array_end(j);
}

static void write_root(struct jsonw *j, const struct changes *changes)
{
	jsonw_object(j);
	jsonw_ktext(j, "root", changes->root);
	jsonw_kbool(j, "cow", changes->cow);
	if (changes->rw)
		jsonw_kbool(j, "rw", true);
	for (enum change_kind k = CHANGE_ADDED; k < CHANGE_N_KINDS; k++)
		write_kind(j, changes, k);
	write_skipped(j, changes);
	write_flagged(j, changes, "runs_on_host", CHANGE_RUNS_ON_HOST);
	write_flagged(j, changes, "host_changed", CHANGE_HOST_CHANGED);
	if (changes->counted)
		jsonw_kint(j, "files", (int64_t)changes->n_files);
	jsonw_ktext(j, "unread", changes->unread);
	jsonw_object_end(j);
}

void changes_json_write(struct str *out, const struct changes_list *list)
{
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	for (size_t i = 0; i < list->n; i++)
		write_root(&j, list->roots[i]);
	jsonw_array_end(&j);
}

static size_t *count_of(struct changes_counts *counts, enum change_kind kind)
{
	size_t *const of[CHANGE_N_KINDS] = {
		[CHANGE_ADDED] = &counts->added,
		[CHANGE_REMOVED] = &counts->removed,
		[CHANGE_CHANGED] = &counts->changed,
		[CHANGE_RENAMED] = &counts->renamed,
		[CHANGE_MODE] = &counts->mode_changed,
	};

	return of[kind];
}

void changes_json_count(const struct changes *changes, struct changes_counts *ret_counts)
{
	const struct change *added = NULL;

	*ret_counts = (struct changes_counts){.root = mem_dup(changes->root),
		.cow = changes->cow,
		.rw = changes->rw,
		.counted = changes->counted,
		.n_files = changes->n_files,
		.unread = mem_dup(changes->unread)};
	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];

		ret_counts->runs_on_host += (c->flags & CHANGE_RUNS_ON_HOST) != 0;
		ret_counts->host_changed += (c->flags & CHANGE_HOST_CHANGED) != 0;
		if ((c->flags & CHANGE_SKIPPED) && !(c->flags & CHANGE_QUIET)) {
			ret_counts->skipped++;
			ret_counts->skipped_git += apply_plan_is_git(c);
		}
		if (!changes_is_listed(c))
			continue;
		++*count_of(ret_counts, c->kind);
		if (c->kind == CHANGE_ADDED)
			added = c;
	}
	if (added && ret_counts->added == 1)
		ret_counts->added_path = mem_printf("%s/%s", changes->root, added->path);
}

static void read_skipped(const json_t *skipped, struct changes_counts *counts)
{
	const json_t *folder;
	size_t i;

	json_array_foreach(skipped, i, folder)
	{
		const char *path = json_string_value(json_object_get(folder, "path"));
		size_t n = (size_t)json_integer_value(json_object_get(folder, "count"));

		counts->skipped += n;
		counts->skipped_git += path && slice_ends(slice_of(path), "/.git") ? n : 0;
	}
}

static void counts_done(struct changes_counts *counts)
{
	free(counts->root);
	free(counts->added_path);
	free(counts->unread);
}

static void read_counts(const json_t *root, struct changes_counts *counts)
{
	const json_t *added = json_object_get(root, kind_words[CHANGE_ADDED]);
	const json_t *first = json_array_get(added, 0);

	*counts = (struct changes_counts){
		.root = mem_dup(json_string_value(json_object_get(root, "root"))),
		.cow = json_is_true(json_object_get(root, "cow")),
		.rw = json_is_true(json_object_get(root, "rw")),
		.runs_on_host = json_array_size(json_object_get(root, "runs_on_host")),
		.host_changed = json_array_size(json_object_get(root, "host_changed")),
		.counted = json_object_get(root, "files") != NULL,
		.n_files = (size_t)json_integer_value(json_object_get(root, "files")),
		.unread = mem_dup(json_string_value(json_object_get(root, "unread"))),
	};
	read_skipped(json_object_get(root, "skipped"), counts);
	for (enum change_kind k = CHANGE_ADDED; k < CHANGE_N_KINDS; k++)
		*count_of(counts, k) = json_array_size(json_object_get(root, kind_words[k]));
	if (counts->added == 1)
		counts->added_path = mem_dup(json_string_value(json_object_get(first, "path")));
}

static void list_add(struct changes_counts_list *list, const json_t *root)
{
	if (!json_is_string(json_object_get(root, "root")))
		return;
	list->roots = mem_grow(list->roots, list->n + 1, sizeof(*list->roots));
	read_counts(root, &list->roots[list->n++]);
}

int changes_json_read(struct slice text, struct changes_counts_list *ret_list)
{
	json_error_t why;
	json_t *root = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, &why);
	const json_t *one;
	size_t i;

	*ret_list = (struct changes_counts_list){0};
	if (!json_is_array(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	json_array_foreach(root, i, one) list_add(ret_list, one);
	json_decref(root);
	return 0;
}

void changes_json_counts_done(struct changes_counts_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		counts_done(&list->roots[i]);
	free(list->roots);
	*list = (struct changes_counts_list){0};
}

size_t changes_json_total(const struct changes_counts *c)
{
	return c->added + c->removed + c->changed + c->renamed + c->mode_changed;
}
