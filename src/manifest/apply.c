/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/apply_park.h"
#include "manifest/apply_work.h"
#include "manifest/host_folder.h"
#include "manifest/journal.h"
#include "manifest/lower.h"
#include "manifest/manifest_internal.h"
#include "manifest/runs_on_host.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

static void index_folders(struct apply *a)
{
	a->new_folders = map_new();
	a->removals = map_new();
	a->stuck_to = map_new();
	a->stuck_from = map_new();
	for (size_t i = 0; i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];

		if (apply_work_is_new_folder(c))
			*map_slot(a->new_folders, slice_of(c->path)) = (void *)(uintptr_t)(i + 1);
		else if (c->kind == CHANGE_REMOVED)
			*map_slot(a->removals, slice_of(c->path)) = (void *)(uintptr_t)(i + 1);
		else if (c->kind == CHANGE_RENAMED && a->items[i].result != APPLY_WAITING)
			apply_work_add_stuck(a, c);
	}
}

/* A living sandbox may have written on since its change was listed. */
static void describe(const struct apply *a, size_t i, struct journal_entry *entry)
{
	struct change c = a->changes->items[i];

	memcpy(entry->state, c.state, sizeof(entry->state));
	if (a->items[i].written[0]) {
		memcpy(c.after.sha256, a->items[i].written, DIGEST_HEX_SIZE);
		scan_side_state(&c, a->layer->id_base, entry->state);
	}
	if (entry->act == JOURNAL_APPLIED)
		changes_content(&c.after, entry->sha256);
}

static int journal_done(struct apply *a)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];
		enum apply_result result = a->items[i].result;
		struct journal_entry entry = {
			.act = JOURNAL_APPLIED, .removed = c->kind == CHANGE_REMOVED};

		if (result != APPLY_DONE && result != APPLY_LESS && result != APPLY_DROPPED)
			continue;
		if (result == APPLY_DROPPED)
			entry.act = JOURNAL_DISCARDED;
		describe(a, i, &entry);
		r = journal_add(a->set->journal, a->layer->n, slice_of(c->path), &entry);
	}
	return r < 0 ? r : journal_sync(a->set->journal);
}

static struct apply_note *add_note(
	struct apply_report *report, enum apply_result result, const char *path, char *text)
{
	report->notes = mem_grow(report->notes, report->n_notes + 1, sizeof(*report->notes));
	report->notes[report->n_notes] =
		(struct apply_note){.result = result, .path = mem_dup(path), .text = text};
	return &report->notes[report->n_notes++];
}

static void report_paths(const struct apply *a, struct apply_report *report)
{
	for (size_t p = 0; p < a->options->n_paths; p++) {
		const char *path = a->options->paths[p];
		size_t i = 0;

		while (i < a->changes->n_items && !apply_plan_names(&a->changes->items[i], path))
			i++;
		if (i < a->changes->n_items)
			continue;
		add_note(report, APPLY_REFUSED, path, mem_dup("nothing to take over there"));
		report->n_unmatched++;
	}
}

/* What is left of a skipped folder is told as one, but not what the host would run of a .git: hooks are few. */
static size_t left_with(const struct change *c, enum apply_result result, const char *shown)
{
	if (result != APPLY_LEFT || !(c->flags & CHANGE_SKIPPED) ||
		((c->flags & CHANGE_RUNS_ON_HOST) && apply_plan_is_git(c)))
		return 0;
	return strncmp(shown, c->path, c->skipped_len) == 0 ? c->skipped_len : 0;
}

/* A new folder goes without saying where something came into it. */
static void find_bare(struct apply *a)
{
	const char *next =
		""; /* what was done behind it in the list, which has what is in a folder behind that */

	for (size_t i = a->changes->n_items; i > 0; i--) {
		const struct change *c = &a->changes->items[i - 1];
		struct apply_item *item = &a->items[i - 1];

		if (!apply_work_is_done(a, i - 1))
			continue;
		item->is_bare = (c->flags & CHANGE_QUIET) && apply_work_is_new_folder(c) &&
		                !path_is_beneath(slice_of(next), slice_of(c->path));
		if (item->is_bare || !(c->flags & CHANGE_QUIET))
			next = c->path;
	}
}

/* Quiet folders are only mentioned where they failed, or are all that was done. */
static void report_items(const struct apply *a, struct apply_report *report)
{
	for (size_t i = 0; i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];
		struct apply_item *item = &a->items[i];
		struct apply_note *note;

		if (item->result == APPLY_WAITING)
			apply_work_set_result(item, APPLY_REFUSED, mem_dup("not reached"));
		if (item->result == APPLY_NOT_NAMED)
			continue;
		if ((c->flags & CHANGE_QUIET) && item->result != APPLY_REFUSED && !item->is_bare)
			continue;
		report->counts[item->result]++;
		note = add_note(report, item->result, changes_shown_path(c), take(&item->text));
		note->kind = c->kind;
		note->from = mem_dup(c->kind == CHANGE_RENAMED ? c->from : NULL);
		note->folder_len = left_with(c, item->result, note->path);
		note->is_dependency =
			(c->flags & CHANGE_RUNS_ON_HOST) && runs_on_host_is_dependency(c->path);
		note->runs_on_host = (c->flags & CHANGE_RUNS_ON_HOST) && !note->is_dependency;
	}
}

static int apply_open(struct apply *a, struct err *err)
{
	int r = host_folder_open(
		a->layer->lower, a->layer->owner_uid, a->layer->owner_gid, &a->host, err);

	if (r < 0)
		return r;
	a->lower_fd = lower_open(a->layer->lower);
	if (a->lower_fd < 0)
		return err_set(err, a->lower_fd, "open '%s': %m", a->layer->lower);
	return 0;
}

static void apply_done(struct apply *a)
{
	apply_plan_free(a->items, a->changes->n_items);
	host_folder_free(a->host);
	scoped_close(&a->lower_fd);
	map_free(a->new_folders);
	map_free(a->removals);
	map_free(a->stuck_to);
	map_free(a->stuck_from);
	moves_free(a->moves);
}

/* Before a file is made beside its place: should we be killed, the next one knows where to look. */
static int note_temporary(void *ctx, const char *path)
{
	struct apply *a = ctx;
	int r = journal_add_temporary(a->set->journal, a->layer->n, path);

	return r < 0 ? r : journal_sync(a->set->journal);
}

static void tell_one_parked(struct apply *a, const char *parked)
{
	for (size_t i = 0; i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];
		scoped_mem char *at = NULL;

		if (c->kind != CHANGE_RENAMED || a->items[i].result != APPLY_REFUSED)
			continue;
		at = journal_now(a->set->journal, a->layer->n, c->from);
		if (strcmp(at, parked) == 0)
			apply_work_set_result(&a->items[i], APPLY_REFUSED,
				mem_printf("%s; it waits as '%s'", a->items[i].text, parked));
	}
}

static void tell_parked(struct apply *a)
{
	const char *parked;

	for (size_t i = 0; (parked = journal_next_parked(a->set->journal, a->layer->n, &i));)
		tell_one_parked(a, parked);
}

/* Our own work gives the folders around what is left new times, and what has other names. */
static int keep_seen(struct apply *a)
{
	bool all = change_layer_lacks_handles(a->layer);
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];
		struct slice base = slice_of(apply_work_base(c));
		bool moves = c->kind == CHANGE_REMOVED || c->before.has_other_names || all;

		if (c->flags & CHANGE_HOST_CHANGED)
			continue;
		r = changes_keep_data(a->set, a->changes, c);
		if (r == 0 && moves && !journal_find_content(a->set->journal, a->layer->n, base))
			r = changes_keep_content(a->set, a->changes, c);
	}
	return r;
}

static int begin(struct apply *a)
{
	int r = journal_add_begun(a->set->journal, a->layer->n);

	if (r == 0)
		r = keep_seen(a);
	return r < 0 ? r : journal_sync(a->set->journal);
}

static bool is_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

/* The state's disk may be another than the folder's. */
static int end_early(const struct apply *a, int r, struct err *err)
{
	const char *place = a->layer->lower;

	if (r == -EINTR)
		return err_set(err, r, "stopped: what was not reached is still pending");
	if (r == journal_failure(a->set->journal))
		place = a->set->dir;
	else if (r == a->upper_failure)
		place = a->layer->upper;
	if (is_full(r))
		return err_set(err, r,
			"the disk of '%s' is full: make room there and call it again, what was not "
			"reached is still pending",
			place);
	return err_set(err, r, "write to '%s': %m", place);
}

static int apply_run(struct apply *a, struct apply_report *report, struct err *err)
{
	int r, kept;

	index_folders(a);
	host_folder_on_temporary(a->host, note_temporary, a);
	r = begin(a);
	if (r == 0)
		r = apply_steps_run(a);
	apply_park_back(a->set->journal, a->layer->n, a->host);
	tell_parked(a);
	if (host_folder_sync(a->host) < 0 && r == 0)
		r = -EIO;
	kept = journal_done(a);
	if (kept == 0)
		kept = apply_keep_touched(a);
	if (kept == 0 && r == 0)
		kept = journal_add_tidy(a->set->journal, a->layer->n);
	report_paths(a, report);
	find_bare(a);
	report_items(a, report);
	if (r == 0)
		r = kept;
	return r < 0 ? end_early(a, r, err) : 0;
}

int apply_changes(struct change_set *set, const struct changes *changes,
	const struct apply_options *options, struct apply_report *ret_report, struct err *err)
{
	struct apply a = {.set = set,
		.changes = changes,
		.layer = changes->layer,
		.options = options,
		.lower_fd = -1,
		.moves = moves_new()};
	int r;

	*ret_report = (struct apply_report){0};
	if (!changes->cow) {
		moves_free(a.moves);
		return err_set(err, -EINVAL, "'%s' is the sandbox's own: nothing to apply it to",
			changes->root);
	}
	a.items = apply_plan_new(changes, options);
	r = apply_open(&a, err);
	if (r == 0)
		r = apply_run(&a, ret_report, err);
	apply_done(&a);
	return r;
}

void apply_report_done(struct apply_report *report)
{
	for (size_t i = 0; i < report->n_notes; i++) {
		free(report->notes[i].path);
		free(report->notes[i].text);
		free(report->notes[i].from);
	}
	free(report->notes);
	*report = (struct apply_report){0};
}

int apply_resolve_path(
	const struct changes *changes, const char *cwd, const char *path, char **ret_path)
{
	const char *const tops[] = {changes->root, changes->layer->lower};
	scoped_str struct str at = {0};

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		size_t len = strlen(tops[i]);
		struct slice top = slice_of(tops[i]);

		path_resolve(path_is_beneath(slice_of(cwd), top) ? slice_of(cwd) : top,
			slice_of(path), &at);
		if (!path_is_beneath(str_slice(&at), top))
			continue;
		*ret_path = mem_dup(at.p[len] == '/' ? at.p + len + 1 : ".");
		return 0;
	}
	return -ENOENT;
}
