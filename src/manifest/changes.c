/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/journal.h"
#include "manifest/lower.h"
#include "manifest/manifest_internal.h"
#include "manifest/runs_on_host.h"
#include "manifest/scan.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define PACKAGE_MAX (1 << 20) /* bytes of a package.json that are looked at */

static void side_done(struct change_side *side)
{
	free(side->target);
}

static void change_done(struct change *c)
{
	free(c->path);
	free(c->from);
	free(c->data);
	free(c->was);
	free(c->own);
	free(c->stored);
	side_done(&c->before);
	side_done(&c->after);
}

void changes_free(struct changes *changes)
{
	if (!changes)
		return;
	for (size_t i = 0; i < changes->n_items; i++)
		change_done(&changes->items[i]);
	for (size_t i = 0; i < changes->n_leaning; i++)
		change_done(&changes->leaning[i]);
	free(changes->items);
	free(changes->leaning);
	free(changes->root);
	free(changes->unread);
	free(changes);
}

struct change *changes_add(struct changes *changes, enum change_kind kind, char *path)
{
	struct change *c;

	if ((changes->n_items & (changes->n_items - 1)) == 0)
		changes->items = mem_grow(changes->items,
			changes->n_items ? changes->n_items * 2 : 1, sizeof(*changes->items));
	c = &changes->items[changes->n_items++];
	*c = (struct change){.kind = kind, .path = path};
	return c;
}

/* A folder's contents follow it at once: the slash sorts before every other byte. */
static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	int r = compare_paths(x->path, y->path);

	if (r)
		return r;
	/* What was taken away at a path comes before what was put there. */
	return (x->kind != CHANGE_REMOVED) - (y->kind != CHANGE_REMOVED);
}

static void take_out(struct changes *changes, struct change *c)
{
	if (!changes_is_far(c)) {
		change_done(c);
		return;
	}
	changes->leaning =
		mem_grow(changes->leaning, changes->n_leaning + 1, sizeof(*changes->leaning));
	changes->leaning[changes->n_leaning++] = *c;
}

void changes_sort(struct changes *changes)
{
	size_t n = 0;

	for (size_t i = 0; i < changes->n_items; i++) {
		if (changes->items[i].kind == CHANGE_NONE)
			take_out(changes, &changes->items[i]);
		else
			changes->items[n++] = changes->items[i];
	}
	changes->n_items = n;
	if (n > 0)
		qsort(changes->items, n, sizeof(*changes->items), compare_changes);
}

size_t changes_skipped_len(struct slice path)
{
	scoped_mem char *text = mem_copy(path.p, path.len);

	return scan_skipped_len(text);
}

bool changes_is_listed(const struct change *change)
{
	return change->kind != CHANGE_NONE && !(change->flags & (CHANGE_QUIET | CHANGE_SKIPPED));
}

bool changes_is_far(const struct change *change)
{
	const char *base = change->from ? change->from : change->path;

	return change->data && S_ISREG(change->after.mode) &&
	       (change->kind == CHANGE_ADDED || strcmp(change->data, base) != 0);
}

const char *changes_shown_path(const struct change *change)
{
	return change->kind == CHANGE_REMOVED && change->from ? change->from : change->path;
}

static mode_t type_of(const struct change *c)
{
	return (c->after.mode ? c->after.mode : c->before.mode) & S_IFMT;
}

/* Whether what lies below a folder says that it came or went. */
static bool goes_without_saying(const struct changes *changes, size_t i)
{
	const struct change *c = &changes->items[i];
	bool removed = c->kind == CHANGE_REMOVED;

	if (!S_ISDIR(type_of(c)) || (c->kind != CHANGE_ADDED && !removed))
		return false;
	for (size_t k = i + 1; k < changes->n_items; k++) {
		const struct change *other = &changes->items[k];

		if (!path_is_beneath(slice_of(other->path), slice_of(c->path)))
			return false;
		if (other->kind != CHANGE_NONE && (other->kind == CHANGE_REMOVED) == removed)
			return true;
	}
	return false;
}

void changes_mark_quiet(struct changes *changes)
{
	for (size_t i = 0; i < changes->n_items; i++)
		if (goes_without_saying(changes, i))
			changes->items[i].flags |= CHANGE_QUIET;
}

size_t changes_data_layer(const struct change *c)
{
	return c->stored ? c->stored_layer : c->own_layer;
}

const char *changes_data_path(const struct change *c)
{
	if (c->stored)
		return c->stored;
	return c->own ? c->own : c->path;
}

static int open_in(const char *dir, const char *path, int flags)
{
	scoped_fd int top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return top < 0 ? -errno : beneath_open(top, path, flags);
}

int changes_open_own(const struct change_layer *layer, const struct change *c, int flags)
{
	return open_in(stack_dir(layer, c->own_layer), c->own ? c->own : c->path, flags);
}

int changes_open_stored(const struct change_layer *layer, const struct change *c, int flags)
{
	scoped_fd int fd =
		open_in(stack_dir(layer, changes_data_layer(c)), changes_data_path(c), flags);
	int r = fd < 0 ? fd : upper_lacks_data(fd);

	if (r > 0)
		r = -ENODATA;
	return r < 0 ? r : take_fd(&fd);
}

static int read_package(int dirfd, const char *path, struct str *out)
{
	const char *name;
	struct stat st;
	scoped_fd int parent = beneath_open_parent(dirfd, path, &name);
	scoped_fd int fd = parent < 0 ? parent : content_open(parent, name, &st);

	return fd < 0 ? fd : fdio_read_all(fd, PACKAGE_MAX, out);
}

static int read_own_package(
	const struct change_layer *layer, const struct change *c, struct str *out)
{
	scoped_fd int top = open(stack_dir(layer, changes_data_layer(c)),
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return top < 0 ? -errno : read_package(top, changes_data_path(c), out);
}

/* Scripts come from the lower folder and the upper as they are now. */
static bool package_differs(const struct change_layer *layer, const struct change *c)
{
	scoped_fd int lower = lower_open_layer(layer);
	scoped_str struct str before = {0}, after = {0};

	if (c->kind == CHANGE_MODE || c->kind == CHANGE_REMOVED)
		return false;
	if (lower < 0)
		return true;
	if (c->before.mode && read_package(lower, c->from ? c->from : c->path, &before) < 0)
		return true;
	if (c->data ? read_package(lower, c->data, &after) < 0
		    : read_own_package(layer, c, &after) < 0)
		return true;
	return runs_on_host_scripts_differ(
		str_slice(&before), str_slice(&after), runs_on_host_is_dependency(c->path));
}

bool changes_dependency_runs(int root_fd, const struct change *c)
{
	scoped_str struct str after = {0};

	if (c->kind == CHANGE_REMOVED)
		return false;
	return read_package(root_fd, c->path, &after) < 0 ||
	       runs_on_host_scripts_differ(str_slice(&(struct str){0}), str_slice(&after), true);
}

const char *changes_runs_on_host(const struct change *c)
{
	bool whole = S_ISLNK(type_of(c)) || (S_ISDIR(type_of(c)) && c->kind == CHANGE_RENAMED);

	if (S_ISDIR(type_of(c)) && !whole)
		return NULL;
	return runs_on_host_reason(c->path, whole);
}

static bool runs_on_host(const struct change_layer *layer, const struct change *c)
{
	if (layer->n < 0 || !changes_runs_on_host(c))
		return false;
	return !runs_on_host_is_package(c->path) || package_differs(layer, c);
}

void changes_content(const struct change_side *side, char ret[DIGEST_HEX_SIZE])
{
	scoped_mem char *text = side->target ? mem_printf("link to %s", side->target) : NULL;

	if (text)
		digest_of(text, strlen(text), ret);
	else
		memcpy(ret, side->sha256, DIGEST_HEX_SIZE);
}

/* At its place, or under the name that it had before an apply renamed it. */
static bool is_known(
	const struct journal *journal, int n, const char *path, const struct change_side *side)
{
	scoped_mem char *old = journal_before(journal, n, path);
	const char *here = journal_find_content(journal, n, slice_of(path));
	const char *there = journal_find_content(journal, n, slice_of(old));
	char content[DIGEST_HEX_SIZE];

	changes_content(side, content);
	return (here && strcmp(here, content) == 0) || (there && strcmp(there, content) == 0);
}

/* The clock of file times moves in steps, and filesystems leave away digits: what changed in the step in which the sandbox
 * was made may have changed after it. */
bool changes_is_since(const struct change_set *set, int64_t ctime_ns)
{
	int64_t step = ctime_ns % CLOCK_NS_PER_S == 0           ? 2 * CLOCK_NS_PER_S   /* FAT */
	               : ctime_ns % (10 * CLOCK_NS_PER_MS) == 0 ? 10 * CLOCK_NS_PER_MS /* exFAT */
	                                                        : 1;

	return ctime_ns + step > set->created_ns;
}

/* Data that lies at another place than the one it is compared with, likewise. */
static bool data_has_changed(const struct change_set *set, int n, const struct change *c)
{
	return changes_is_far(c) && c->kind != CHANGE_RENAMED &&
	       (c->is_data_unsure || changes_is_since(set, c->data_ctime_ns)) &&
	       !is_known(set->journal, n, c->data, &c->after);
}

/* By content where that is known, else by the time of change, which nobody can set. */
static bool host_has_changed(const struct change_set *set, int n, const struct change *c)
{
	const char *base = c->from ? c->from : c->path;

	if (data_has_changed(set, n, c))
		return true;
	if (S_ISDIR(c->before.mode) && c->kind == CHANGE_MODE)
		return (c->flags & CHANGE_UNSEEN) &&
		       !journal_is_made(set->journal, n, slice_of(base));
	if (S_ISDIR(c->before.mode))
		return c->kind == CHANGE_RENAMED && (c->flags & CHANGE_UNSEEN);
	if (c->before.mode == 0 ||
		(!changes_is_since(set, c->before.ctime_ns) && !(c->flags & CHANGE_UNSEEN)))
		return false;
	return !is_known(set->journal, n, base, &c->before);
}

/* What an apply renamed, and what did not come over with it (an owner) does not come over alone. */
static bool is_settled_by_rename(const struct change_set *set, const struct change_layer *layer,
	const struct change *c, const struct journal_entry *e)
{
	scoped_mem char *old = journal_before(set->journal, layer->n, c->path);
	struct change renamed = *c;
	char state[DIGEST_HEX_SIZE];

	if (!e || c->kind != CHANGE_MODE || strcmp(old, c->path) == 0)
		return false;
	renamed.kind = CHANGE_RENAMED;
	renamed.from = old;
	scan_side_state(&renamed, layer->id_base, state);
	return strcmp(e->state, state) == 0;
}

/* Applied or discarded in the state in which it is now. */
static bool is_settled(
	const struct change_set *set, const struct change_layer *layer, const struct change *c)
{
	int n = layer->n;
	const struct journal_entry *e =
		journal_find(set->journal, n, slice_of(c->path), c->kind == CHANGE_REMOVED);

	/* What one act put in the place of what it took away was removed, too. */
	if (c->kind == CHANGE_REMOVED && !(c->flags & CHANGE_REPLACED) &&
		journal_find(set->journal, n, slice_of(c->path), false))
		return false;
	if (is_settled_by_rename(set, layer, c, e))
		return true;
	return e && strcmp(e->state, c->state) == 0;
}

/* A file that a killed apply left on the host, and the next one takes away. */
static bool is_left_over(const struct change_set *set, int n, const struct change *c)
{
	return c->kind == CHANGE_REMOVED &&
	       journal_is_temporary(set->journal, n, slice_of(c->from ? c->from : c->path));
}

static void finish_one(
	const struct change_set *set, const struct change_layer *layer, struct change *c)
{
	c->skipped_len = scan_skipped_len(c->path);
	if (c->skipped_len > 0)
		c->flags |= CHANGE_SKIPPED;
	if ((S_ISREG(c->after.mode) && !c->after.sha256[0]) ||
		(S_ISREG(c->before.mode) && !c->before.sha256[0]))
		c->flags |= CHANGE_UNREAD;
	scan_side_state(c, layer->id_base, c->state);
	if (is_settled(set, layer, c) || is_left_over(set, layer->n, c)) {
		c->kind = CHANGE_NONE;
		return;
	}
	if (host_has_changed(set, layer->n, c))
		c->flags |= CHANGE_HOST_CHANGED;
	if (runs_on_host(layer, c))
		c->flags |= CHANGE_RUNS_ON_HOST;
}

/* Paths below the folder that was asked for, as the root of the list is that one. */
static void cut_paths(struct changes *changes, const char *below)
{
	size_t len = strlen(below);

	for (size_t i = 0; len > 0 && i < changes->n_items; i++) {
		struct change *c = &changes->items[i];
		char *rest = mem_dup(c->path[len] == '/' ? c->path + len + 1 : ".");

		free(c->path);
		c->path = rest;
		if (c->from && path_is_beneath(slice_of(c->from), slice_of(below))) {
			rest = mem_dup(c->from[len] == '/' ? c->from + len + 1 : ".");
			free(c->from);
			c->from = rest;
		}
	}
}

static struct changes *changes_new(const struct changes_query *query)
{
	struct changes *changes = new0(struct changes);
	const char *guest = query->layer->guest;

	changes->n = query->layer->n;
	changes->cow = query->layer->n >= 0;
	changes->layer = query->layer;
	if (!query->below[0])
		changes->root = mem_dup(guest);
	else
		changes->root =
			mem_printf("%s/%s", strcmp(guest, "/") == 0 ? "" : guest, query->below);
	return changes;
}

int changes_read(const struct change_set *set, const struct changes_query *query,
	struct changes **ret_changes, struct err *err)
{
	scoped(changes) struct changes *changes = changes_new(query);
	int r;

	if (geteuid() != 0)
		return err_set(err, -EPERM, "reading what changed needs root");
	r = scan_layer(set, query, changes, err);
	if (r < 0)
		return err_wrap(err, r, "changes below '%s'", changes->root);
	for (size_t i = 0; i < changes->n_items; i++)
		if (changes->items[i].kind != CHANGE_NONE)
			finish_one(set, query->layer, &changes->items[i]);
	changes_sort(changes);
	changes_mark_quiet(changes);
	cut_paths(changes, query->below);
	*ret_changes = take(&changes);
	return 0;
}

void changes_list_add(struct changes_list *list, struct changes *changes)
{
	list->roots = mem_grow(list->roots, list->n + 1, sizeof(void *));
	list->roots[list->n++] = changes;
}

static struct changes *read_into(
	const struct change_set *set, const struct changes_query *query, struct changes_list *list)
{
	struct changes *changes = NULL;
	struct err err;

	if (changes_read(set, query, &changes, &err) < 0) {
		changes = changes_new(query);
		changes->unread = mem_dup(err.msg);
	}
	changes_list_add(list, changes);
	return changes;
}

static size_t count_files(const struct changes *changes)
{
	size_t n = 0;

	for (size_t i = 0; i < changes->n_items; i++) {
		mode_t mode = changes->items[i].after.mode;

		n += mode != 0 && !S_ISDIR(mode);
	}
	return n;
}

/* Keeps the number of a root's files, not their names. */
static void count_only(struct changes *changes)
{
	changes->counted = true;
	changes->cow = false; /* no list, nothing to apply */
	changes->n_files = count_files(changes);
	for (size_t i = 0; i < changes->n_items; i++)
		change_done(&changes->items[i]);
	changes->n_items = 0;
}

/* Folders of the root's own layers; nothing for one that a mount covers. */
static void read_own(const struct change_set *set, struct changes_list *list)
{
	static const struct {
		const char *path;
		bool count;
	} own[] = {{"/etc", false}, {"/usr/local", false}, {"/root", true}, {"/home", true}};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct slice below;
		struct changes *changes;
		struct changes_query query = {.count_only = own[i].count};

		query.layer = change_set_find(set, slice_of(own[i].path), &below);
		if (!query.layer || query.layer->n >= 0)
			continue;
		query.below = below.p;
		changes = read_into(set, &query, list);
		if (own[i].count)
			count_only(changes);
	}
}

int changes_read_all(const struct change_set *set, struct changes_list *ret_list, struct err *err)
{
	*ret_list = (struct changes_list){0};
	if (geteuid() != 0)
		return err_set(err, -EPERM, "reading what changed needs root");
	for (size_t i = 0; i < set->n_layers; i++) {
		bool counted = set->layers[i].counted;
		struct changes_query query = {
			.layer = &set->layers[i], .below = "", .count_only = counted};
		struct changes *changes;

		if (set->layers[i].n < 0)
			continue;
		changes = read_into(set, &query, ret_list);
		if (counted)
			count_only(changes);
	}
	read_own(set, ret_list);
	return 0;
}

void changes_list_done(struct changes_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		changes_free(list->roots[i]);
	free(list->roots);
	*list = (struct changes_list){0};
}

static int keep_side(
	struct change_set *set, int n, const char *path, const struct change_side *side)
{
	struct journal_entry seen = {.act = JOURNAL_SEEN};

	changes_content(side, seen.sha256);
	return seen.sha256[0] ? journal_add(set->journal, n, slice_of(path), &seen) : 0;
}

int changes_keep_content(
	struct change_set *set, const struct changes *changes, const struct change *c)
{
	return keep_side(set, changes->n, c->from ? c->from : c->path, &c->before);
}

int changes_keep_data(struct change_set *set, const struct changes *changes, const struct change *c)
{
	if (!changes_is_far(c) || changes_is_since(set, c->data_ctime_ns) ||
		journal_find_content(set->journal, changes->n, slice_of(c->data)))
		return 0;
	return keep_side(set, changes->n, c->data, &c->after);
}

int changes_keep_seen(struct change_set *set, const struct changes_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct changes *changes = list->roots[i];

		for (size_t k = 0; changes->cow && k < changes->n_items; k++) {
			const struct change *c = &changes->items[k];
			int r = changes_keep_data(set, changes, c);

			if (r == 0 && !changes_is_since(set, c->before.ctime_ns) &&
				!(c->flags & CHANGE_UNSEEN))
				r = changes_keep_content(set, changes, c);
			if (r < 0)
				return r;
		}
	}
	return 0;
}
