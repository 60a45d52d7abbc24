/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an apply: apply.h tells it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "manifest/apply_work.h"
#include "manifest/beneath.h"
#include "manifest/kept.h"
#include "manifest/upper.h"
#include "util/mem.h"
#include "util/scoped.h"

typedef int apply_act(struct apply *a, size_t i);

/* Files whose data lies below at a place that this work may change get it for themselves first, taken over or not. */
static int make_whole(struct apply *a, const struct change *c)
{
	scoped_fd int data = beneath_open(a->lower_fd, c->data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	scoped_mem char *name = NULL;
	scoped_fd int own = -1;
	int r;

	if (data < 0)
		return data;
	if (c->own_layer > 0) {
		name = kept_name(a->layer, c->own_layer, c->own);
		r = kept_put(a->layer, name, data);
	} else {
		own = changes_open_own(a->layer, c, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
		r = own < 0 ? own : upper_make_whole(own, data);
	}
	if (r < 0)
		a->upper_failure = r;
	return r;
}

/* Without it the next steps could take away the only copy there is. */
static int make_all_whole(struct apply *a)
{
	const struct changes *changes = a->changes;
	int r = 0;

	if (a->options->is_live)
		return 0;
	for (size_t i = 0; r == 0 && i < changes->n_items; i++)
		if (changes_is_far(&changes->items[i])) {
			r = make_whole(a, &changes->items[i]);
			a->items[i].is_whole = true;
		}
	for (size_t i = 0; r == 0 && i < changes->n_leaning; i++)
		r = make_whole(a, &changes->leaning[i]);
	return r;
}

static bool is_file_at_its_place(const struct change *c)
{
	return (c->kind == CHANGE_CHANGED || c->kind == CHANGE_MODE) && !apply_work_is_folder(c) &&
	       !c->from;
}

static bool is_removed_file(const struct change *c)
{
	return c->kind == CHANGE_REMOVED && !apply_work_is_folder(c) &&
	       !(c->flags & CHANGE_REPLACED);
}

static bool is_removed_folder(const struct change *c)
{
	return c->kind == CHANGE_REMOVED && apply_work_is_folder(c);
}

/* A file whose place a new folder should have taken. */
static bool is_replaced_file(const struct change *c)
{
	return c->kind == CHANGE_REMOVED && !apply_work_is_folder(c);
}

static bool is_other_file(const struct change *c)
{
	return !apply_work_is_folder(c) && c->kind != CHANGE_RENAMED && c->kind != CHANGE_REMOVED;
}

static bool is_folder_mode(const struct change *c)
{
	return apply_work_is_folder(c) && c->kind == CHANGE_MODE;
}

static int run_step(
	struct apply *a, bool (*wants)(const struct change *), apply_act *act, bool backwards)
{
	size_t n = a->changes->n_items;

	for (size_t k = 0; k < n; k++) {
		size_t i = backwards ? n - 1 - k : k;
		int r;

		if (a->items[i].result != APPLY_WAITING || !wants(&a->changes->items[i]))
			continue;
		if (apply_work_is_stopped(a))
			return -EINTR;
		/* What is taken away is found where it was before. */
		if (a->changes->items[i].kind != CHANGE_REMOVED && apply_item_is_stuck(a, i))
			continue;
		r = apply_work_settle(a, i, act(a, i));
		if (r < 0)
			return r;
	}
	return 0;
}

static bool needs_mode(const struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];

	return apply_work_is_done(a, i) && S_ISDIR(c->after.mode) &&
	       (c->kind == CHANGE_ADDED || c->kind == CHANGE_RENAMED);
}

/* New and renamed folders get their mode last, since it may forbid writing into them; also where the work ended early: one
 * without its mode is not done. */
static int set_folder_modes(struct apply *a)
{
	int first = 0;

	for (size_t k = a->changes->n_items; k > 0; k--) {
		const struct change *c = &a->changes->items[k - 1];
		int r;

		if (!needs_mode(a, k - 1))
			continue;
		r = apply_work_settle(
			a, k - 1, host_folder_set_mode(a->host, c->path, c->after.mode));
		if (first == 0)
			first = r;
	}
	return first;
}

int apply_steps_run(struct apply *a)
{
	int r = make_all_whole(a), modes;

	if (r == 0)
		r = run_step(a, is_file_at_its_place, apply_item_put, false);
	if (r == 0)
		r = run_step(a, is_removed_file, apply_item_remove, false);
	if (r == 0)
		r = run_step(a, is_removed_folder, apply_item_remove_early, true);
	if (r == 0)
		r = apply_rename_all(a);
	if (r == 0)
		r = run_step(a, is_removed_folder, apply_item_remove, true);
	if (r == 0)
		r = run_step(a, apply_work_is_new_folder, apply_item_make_folder, false);
	if (r == 0)
		r = run_step(a, is_replaced_file, apply_item_remove, false);
	if (r == 0)
		r = run_step(a, is_other_file, apply_item_put, false);
	if (r == 0)
		r = run_step(a, is_folder_mode, apply_item_put, true);
	modes = set_folder_modes(a);
	return r < 0 ? r : modes;
}
