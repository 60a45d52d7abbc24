/* SPDX-License-Identifier: Apache-2.0 */
/* Renames on the host: in an order in which none takes another's place, by way of a parking name where there is
 * no such order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/apply_work.h"
#include "manifest/journal.h"
#include "util/id.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

static int rename_on_host(struct apply *a, const char *from, const char *to)
{
	int r = journal_add_rename(a->set->journal, a->layer->n, slice_of(from), slice_of(to));

	if (r == 0)
		r = journal_sync(a->set->journal);
	if (r == 0)
		r = host_folder_rename(a->host, from, to);
	if (r < 0)
		return r;
	a->renames = mem_grow(a->renames, a->n_renames + 1, sizeof(*a->renames));
	a->renames[a->n_renames++] = (struct done_rename){.from = mem_dup(from), .to = mem_dup(to)};
	return 0;
}

/* What was removed where something renamed goes now. */
static int clear_place(struct apply *a, const char *path)
{
	uintptr_t place = (uintptr_t)map_find(a->removals, slice_of(path));

	if (place == 0 || a->items[place - 1].result != APPLY_WAITING)
		return 0;
	return apply_item_remove(a, place - 1);
}

static bool has_new_content(const struct change *c)
{
	return S_ISREG(c->after.mode) &&
	       !(c->before.sha256[0] && strcmp(c->before.sha256, c->after.sha256) == 0);
}

static int rename_item(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	scoped_mem char *at = apply_work_now_at(a, c->from);
	scoped_str struct str lost = {0};
	int r = apply_item_make_parents(a, c->path);

	if (r == 0)
		r = clear_place(a, c->path);
	if (r == 0)
		r = rename_on_host(a, at, c->path);
	if (r == 0 && has_new_content(c))
		r = apply_item_write_file(a, i, true, &lost);
	else if (r == 0 && !apply_work_is_folder(c))
		r = apply_item_write_rights(a, i, &lost);
	if (r == 0)
		apply_work_set_done(a, i, &lost);
	return r;
}

static bool is_below(const char *path, const char *folder)
{
	return strcmp(path, folder) != 0 && path_is_beneath(slice_of(path), slice_of(folder));
}

/* Whether a rename has to wait for another: *ret_blocker is then where that one's folder is now, in the way, or
 * NULL where it only has to come first. The caller frees it. */
static bool is_blocked(struct apply *a, size_t i, char **ret_blocker)
{
	const char *path = a->changes->items[i].path;
	bool waits = false;

	for (size_t k = 0; k < a->changes->n_items; k++) {
		const struct change *c = &a->changes->items[k];
		scoped_mem char *at = NULL;

		if (c->kind != CHANGE_RENAMED || a->items[k].result != APPLY_WAITING)
			continue;
		at = apply_work_now_at(a, c->from);
		/* Below its place, in its place, or in the folder whose place it takes. */
		if (is_below(path, at) || is_below(at, path) || (k != i && strcmp(path, at) == 0)) {
			*ret_blocker = take(&at);
			return true;
		}
		waits |= k != i && is_below(path, c->path);
	}
	return waits;
}

/* Breaks a ring of renames: what stands in the way waits at the top, under a name of its own. */
static int park(struct apply *a, const char *path)
{
	char id[ID_SIZE];
	scoped_mem char *aside = NULL;

	id_new("tm", id);
	aside = mem_printf(".cloche-%s", id);
	return rename_on_host(a, path, aside);
}

static bool wants_rename(const struct apply *a, size_t i)
{
	return a->changes->items[i].kind == CHANGE_RENAMED && a->items[i].result == APPLY_WAITING;
}

static int rename_round(struct apply *a, size_t *ret_done, size_t *ret_blocked, char **ret_blocker)
{
	*ret_done = *ret_blocked = 0;
	for (size_t i = 0; i < a->changes->n_items; i++) {
		char *blocker = NULL;
		int r;

		if (!wants_rename(a, i))
			continue;
		if (is_blocked(a, i, &blocker)) {
			if (!*ret_blocker)
				*ret_blocker = take(&blocker);
			free(blocker);
			*ret_blocked = i + 1;
			continue;
		}
		r = apply_work_settle(a, i, rename_item(a, i));
		if (r < 0)
			return r;
		++*ret_done;
	}
	return 0;
}

int apply_rename_all(struct apply *a)
{
	for (;;) {
		scoped_mem char *blocker = NULL;
		size_t n_done, blocked;
		int r = rename_round(a, &n_done, &blocked, &blocker);

		if (r < 0 || blocked == 0)
			return r;
		if (n_done > 0)
			continue;
		r = apply_work_settle(a, blocked - 1, blocker ? park(a, blocker) : -EEXIST);
		if (r < 0)
			return r;
	}
}
