/* SPDX-License-Identifier: Apache-2.0 */
/* Renames on the host: in an order in which none takes another's place, by way of a parking name where there is
 * no such order.
 *
 * How it works. Those that wait are known by where they are now (which changes with the folders around them) and by where
 * they go. Round by round each that can go goes; the place it leaves lets the one that wants it go at once, so a chain
 * is done in one round. In a round after one in which none could go, what stands in the way is parked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/apply_park.h"
#include "manifest/apply_work.h"
#include "manifest/below.h"
#include "manifest/journal.h"
#include "util/clock.h"
#include "util/digest.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define PARK_HEX 20 /* digits of a parking name */

struct order {
	struct apply *a;
	char **at;           /* of each change that waits: where it is now; else NULL */
	struct map *sources; /* those places: the change there, counted from 1 */
	struct map *below;   /* of those places */
	struct map *targets; /* where they go: likewise */
};

/* ---- who waits ---- */

static void set_place(struct order *o, size_t i, char *at)
{
	o->at[i] = at;
	*map_slot(o->sources, slice_of(at)) = (void *)(uintptr_t)(i + 1);
	below_add(o->below, at);
}

static void drop_place(struct order *o, size_t i)
{
	if (!o->at[i])
		return;
	if ((uintptr_t)map_find(o->sources, slice_of(o->at[i])) == i + 1)
		(void)map_remove(o->sources, slice_of(o->at[i]));
	below_drop(o->below, o->at[i]);
	free(o->at[i]);
	o->at[i] = NULL;
}

/* Done or given up. */
static void settle(struct order *o, size_t i)
{
	const struct change *c = &o->a->changes->items[i];

	drop_place(o, i);
	(void)map_remove(o->targets, slice_of(c->path));
	if (o->a->items[i].result == APPLY_REFUSED)
		apply_work_add_stuck(o->a, c);
}

static bool is_waiting(const struct order *o, size_t i)
{
	return o->a->changes->items[i].kind == CHANGE_RENAMED &&
	       o->a->items[i].result == APPLY_WAITING;
}

/* Looks again where those are that a rename took along. */
static void follow(struct order *o, const char *from)
{
	uintptr_t there = (uintptr_t)map_find(o->sources, slice_of(from));
	bool took_others = below_count(o->below, from) > 0;

	for (size_t i = 0; (there || took_others) && i < o->a->changes->n_items; i++) {
		char *now;

		if (!o->at[i] || !path_is_beneath(slice_of(o->at[i]), slice_of(from)))
			continue;
		now = apply_work_now_at(o->a, o->a->changes->items[i].from);
		drop_place(o, i);
		set_place(o, i, now);
	}
}

/* ---- one rename ---- */

static int rename_on_host(struct apply *a, const char *from, const char *to, bool is_parked)
{
	int r = apply_journal_rename(a->set->journal, a->layer->n, a->host, from, to, is_parked);

	if (r == 0)
		moves_add(a->moves, from, to);
	return r;
}

/* Removed folders in a removed folder that could not go so far: what was renamed out of them has left now. */
static int remove_emptied(struct apply *a, size_t folder)
{
	const struct change *items = a->changes->items;
	const char *path = items[folder].path;
	size_t len = strlen(path), end = folder + 1;
	int r = 0;

	while (end < a->changes->n_items && strncmp(items[end].path, path, len) == 0)
		end++;
	while (r == 0 && --end > folder)
		if (items[end].kind == CHANGE_REMOVED && apply_work_is_folder(&items[end]) &&
			a->items[end].result == APPLY_WAITING)
			r = apply_work_settle(a, end, apply_item_remove_early(a, end));
	return r;
}

/* What was removed where something renamed goes now. */
static int clear_place(struct apply *a, const char *path)
{
	uintptr_t place = (uintptr_t)map_find(a->removals, slice_of(path));
	int r;

	if (place == 0 || a->items[place - 1].result != APPLY_WAITING)
		return 0;
	r = apply_item_remove(a, place - 1);
	if (r != -ENOTEMPTY)
		return r;
	r = remove_emptied(a, place - 1);
	return r < 0 ? r : apply_item_remove(a, place - 1);
}

/* It is still the file that was listed: that its name is another one by now has left its times but that of change. */
static int check_source(const struct apply *a, const struct change *c, const char *at)
{
	struct stat st;
	int r = host_folder_stat(a->host, at, &st);

	if (r < 0 || S_ISDIR(c->before.mode))
		return r;
	if ((st.st_mode & S_IFMT) != (c->before.mode & S_IFMT) || st.st_size != c->before.size ||
		clock_ns(st.st_mtim) != c->before.mtime_ns)
		return -EAGAIN;
	return 0;
}

static int rename_item(struct apply *a, size_t i, const char *at)
{
	const struct change *c = &a->changes->items[i];
	scoped_str struct str lost = {0};
	int r;

	if (apply_item_is_stuck(a, i))
		return 0;
	r = apply_item_make_parents(a, c->path);
	if (r == 0)
		r = check_source(a, c, at);
	if (r == 0)
		r = clear_place(a, c->path);
	if (r == 0)
		r = rename_on_host(a, at, c->path, false);
	if (r == 0 && apply_work_has_new_content(c))
		r = apply_item_write_file(a, i, true, &lost);
	else if (r == 0 && !apply_work_is_folder(c))
		r = apply_item_write_rights(a, i, &lost);
	if (r == 0)
		apply_work_set_done(a, i, &lost);
	return r;
}

/* Breaks a ring of renames: what stands in the way waits at the top, under a name of its own, which is the same each
 * time. */
static int park(struct order *o, const char *path)
{
	scoped_mem char *what = mem_printf("%s\n%s", o->a->set->dir, path);
	scoped_mem char *from = mem_dup(path), *aside = NULL;
	char hex[DIGEST_HEX_SIZE];
	int r;

	digest_of(what, strlen(what), hex);
	aside = mem_printf(RENAMES_PARK "%.*s", PARK_HEX, hex);
	r = rename_on_host(o->a, from, aside, true);
	if (r == 0)
		follow(o, from);
	return r;
}

/* ---- the order ---- */

/* What stands in the way of a rename, NULL where nothing does. *ret_waits: another has to come first. */
static const char *find_blocker(const struct order *o, size_t i, bool *ret_waits)
{
	const char *path = o->a->changes->items[i].path;
	uintptr_t there = (uintptr_t)map_find(o->sources, slice_of(path));

	*ret_waits = false;
	if (there && there != i + 1) /* in its place */
		return o->at[there - 1];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct slice folder = {.p = path, .len = (size_t)(slash - path)};

		there = (uintptr_t)map_find(o->sources, folder);
		if (there) /* its place lies in what is to go */
			return o->at[there - 1];
		*ret_waits |= map_find(o->targets, folder) != NULL;
	}
	if (below_count(o->below, path) == 0)
		return NULL;
	for (size_t k = 0; k < o->a->changes->n_items; k++) /* in the folder whose place it takes */
		if (o->at[k] && path_is_beneath(slice_of(o->at[k]), slice_of(path)))
			return o->at[k];
	return NULL;
}

/* Does one, and then the one that wants the place it left, and so on. */
static int go(struct order *o, size_t i, size_t *n_done)
{
	for (;;) {
		scoped_mem char *from = mem_dup(o->at[i]);
		uintptr_t next;
		bool waits;
		int r = apply_work_settle(o->a, i, rename_item(o->a, i, from));

		if (r < 0)
			return r;
		settle(o, i);
		follow(o, from);
		++*n_done;
		next = (uintptr_t)map_find(o->targets, slice_of(from));
		if (!next || !is_waiting(o, next - 1) || find_blocker(o, next - 1, &waits) || waits)
			return 0;
		i = next - 1;
	}
}

struct round {
	bool may_park;
	size_t n_done, n_parked, blocked; /* blocked: one that could not go, counted from 1 */
};

static int try_one(struct order *o, size_t i, struct round *round)
{
	bool waits;
	const char *blocker = find_blocker(o, i, &waits);
	int r;

	if (!blocker && !waits)
		return go(o, i, &round->n_done);
	round->blocked = i + 1;
	if (!blocker || !round->may_park)
		return 0;
	r = park(o, blocker);
	if (r == 0)
		round->n_parked++;
	else
		r = apply_work_settle(o->a, i, r);
	if (!is_waiting(o, i))
		settle(o, i);
	else if (r == 0 && !find_blocker(o, i, &waits) && !waits)
		return go(o, i, &round->n_done);
	return r;
}

static int run_rounds(struct order *o)
{
	struct round round = {0};

	do {
		bool stuck = round.blocked && round.n_done + round.n_parked == 0;

		/* Where parking does not help either, one is given up. */
		if (stuck && round.may_park) {
			(void)apply_work_settle(o->a, round.blocked - 1, -EEXIST);
			settle(o, round.blocked - 1);
		}
		round = (struct round){.may_park = stuck};
		for (size_t i = 0; i < o->a->changes->n_items; i++) {
			int r = is_waiting(o, i) ? try_one(o, i, &round) : 0;

			if (r < 0)
				return r;
			if (apply_work_is_stopped(o->a))
				return -EINTR;
		}
	} while (round.blocked);
	return 0;
}

int apply_rename_all(struct apply *a)
{
	struct order o = {.a = a,
		.at = new0_n(char *, a->changes->n_items + 1),
		.sources = map_new(),
		.below = map_new(),
		.targets = map_new()};
	int r;

	for (size_t i = 0; i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];

		if (!is_waiting(&o, i))
			continue;
		set_place(&o, i, apply_work_now_at(a, c->from));
		*map_slot(o.targets, slice_of(c->path)) = (void *)(uintptr_t)(i + 1);
	}
	r = run_rounds(&o);
	for (size_t i = 0; i < a->changes->n_items; i++)
		free(o.at[i]);
	free(o.at);
	map_free(o.sources);
	map_free(o.below);
	map_free(o.targets);
	return r;
}
