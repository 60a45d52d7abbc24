/* SPDX-License-Identifier: Apache-2.0 */
/* Files of shared layers whose data lies below at another place. No sandbox may write to such a layer, so once that place
 * changes nothing has the data: they come over before all else, and the journal knows it.
 *
 * How it works. One whose own place holds the data of another waits for that one. What is left then are rings, which are
 * done together, with all their data open, and those that wait for one that does not come over, which stay. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/apply_work.h"
#include "manifest/journal.h"
#include "util/mem.h"

/* Who still needs the data at a place below. */
struct need {
	size_t n;
	const char *by; /* one of them */
};

struct shared {
	struct apply *a;
	struct map *needs; /* by that place */
	struct map
		*holders; /* of the files meant here: the one whose place that is, counted from 1 */
};

static bool is_meant(const struct change *c)
{
	return changes_is_shared_far(c) && !c->from;
}

static struct need *find_need(const struct shared *s, const char *place)
{
	return map_find(s->needs, slice_of(place));
}

static void add_needs(struct shared *s)
{
	const struct changes *changes = s->a->changes;

	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];
		void **slot = is_meant(c) ? map_slot(s->needs, slice_of(c->data)) : NULL;
		struct need *need = slot ? *slot : NULL;

		if (!slot)
			continue;
		if (!need)
			*slot = need = new0(struct need);
		need->n++;
		need->by = c->path;
		*map_slot(s->holders, slice_of(c->path)) = (void *)(uintptr_t)(i + 1);
	}
}

static void shared_done(struct shared *s)
{
	struct slice key;
	void *need;

	for (size_t i = 0; map_next(s->needs, &i, &key, &need);)
		free(need);
	map_free(s->needs);
	map_free(s->holders);
}

/* The one that waits because its place holds the data of item i; SIZE_MAX: none. */
static size_t find_holder(const struct shared *s, size_t i)
{
	uintptr_t place = (uintptr_t)map_find(s->holders, slice_of(s->a->changes->items[i].data));

	return place > 0 && s->a->items[place - 1].result == APPLY_WAITING ? place - 1 : SIZE_MAX;
}

static bool is_needed(const struct shared *s, size_t i)
{
	const struct need *need = find_need(s, s->a->changes->items[i].path);

	return need && need->n > 0;
}

static int keep_done(struct apply *a, const struct change *c)
{
	struct journal_entry entry = {.act = JOURNAL_APPLIED};

	memcpy(entry.state, c->state, sizeof(entry.state));
	changes_content(&c->after, entry.sha256);
	return journal_add(a->set->journal, a->layer->n, slice_of(c->path), &entry);
}

/* What is as it should be, but leans on a place that may change. */
static int keep_leaning(struct apply *a)
{
	const struct changes *changes = a->changes;
	int r = 0;

	for (size_t i = 0; r == 0 && i < changes->n_leaning; i++)
		if (changes_is_shared_far(&changes->leaning[i]))
			r = keep_done(a, &changes->leaning[i]);
	return r < 0 ? r : journal_sync(a->set->journal);
}

/* The journal has it before the place of its data changes. */
static int put(struct shared *s, size_t i)
{
	const struct change *c = &s->a->changes->items[i];
	int r = apply_steps_do(s->a, i, apply_item_put);

	s->a->items[i].is_early = s->a->items[i].result == APPLY_REFUSED;
	if (r < 0 || !apply_work_is_done(s->a, i))
		return r;
	find_need(s, c->data)->n--;
	r = keep_done(s->a, c);
	return r < 0 ? r : journal_sync(s->a->set->journal);
}

/* Puts one, then the one that waited for it, and so on. */
static int put_chain(struct shared *s, size_t i)
{
	while (i != SIZE_MAX && !is_needed(s, i)) {
		int r = put(s, i);

		if (r < 0 || !apply_work_is_done(s->a, i))
			return r;
		i = find_holder(s, i);
	}
	return 0;
}

static int put_free(struct shared *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->a->changes->n_items; i++)
		if (is_meant(&s->a->changes->items[i]) && s->a->items[i].result == APPLY_WAITING)
			r = put_chain(s, i);
	return r;
}

/* A ring is begun only where each of it has a place to go to. */
static bool has_folder(const struct apply *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	scoped_mem char *folder = slash ? mem_copy(path, (size_t)(slash - path)) : NULL;
	struct stat st;

	return !folder || map_find(a->new_folders, slice_of(folder)) ||
	       host_folder_stat(a->host, folder, &st) == 0;
}

static void refuse_holder(struct apply *a, size_t i, const char *needed_by)
{
	a->items[i].must_stay = true;
	if (a->items[i].result != APPLY_WAITING)
		return;
	a->items[i].is_early = true;
	apply_work_set_result(&a->items[i], APPLY_REFUSED,
		mem_printf("it holds the data of '%s', which has to come over first", needed_by));
}

/* Whatever waits for one that does not come over does not either. */
static void refuse_stuck(struct shared *s)
{
	struct apply *a = s->a;

	for (size_t i = 0; i < a->changes->n_items; i++) {
		size_t at = i, holder;

		if (!is_meant(&a->changes->items[i]) || apply_work_is_done(a, i))
			continue;
		if (a->items[i].result == APPLY_WAITING &&
			!has_folder(a, a->changes->items[i].path)) {
			(void)apply_work_settle(a, i, -ENOENT);
			a->items[i].is_early = true;
		}
		if (a->items[i].result == APPLY_WAITING)
			continue;
		for (; (holder = find_holder(s, at)) != SIZE_MAX; at = holder)
			refuse_holder(a, holder, a->changes->items[at].path);
	}
}

static int put_rings(struct shared *s)
{
	struct apply *a = s->a;
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->changes->n_items; i++)
		if (is_meant(&a->changes->items[i]) && a->items[i].result == APPLY_WAITING)
			r = put(s, i);
	return r;
}

/* What holds data that is still needed stays as it is. */
static void keep_needed(struct shared *s)
{
	const struct changes *changes = s->a->changes;

	for (size_t i = 0; map_len(s->needs) > 0 && i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];
		const struct need *need = find_need(s, apply_work_base(c));

		if (need && need->n > 0 && (c->kind == CHANGE_REMOVED || c->kind == CHANGE_CHANGED))
			refuse_holder(s->a, i, need->by);
	}
}

int apply_shared_run(struct apply *a)
{
	struct shared s = {.a = a, .needs = map_new(), .holders = map_new()};
	int r;

	add_needs(&s);
	r = keep_leaning(a);
	if (r == 0)
		r = put_free(&s);
	if (r == 0) {
		refuse_stuck(&s);
		r = put_rings(&s);
	}
	keep_needed(&s);
	shared_done(&s);
	return r;
}

bool apply_shared_is_left(struct apply *a)
{
	bool any = false;

	for (size_t i = 0; i < a->changes->n_items; i++) {
		struct apply_item *item = &a->items[i];

		if (!item->is_early)
			continue;
		item->is_early = item->must_stay = false;
		free(take(&item->text));
		item->result = APPLY_WAITING;
		any = true;
	}
	return any;
}
