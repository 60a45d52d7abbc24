/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what has settled. A name that is told as gone is freed only when what goes from its folder is told, so that
 * telling one thing frees nothing that somebody else holds. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/watch_fold.h"
#include "manifest/watch_internal.h"
#include "util/clock.h"
#include "util/mem.h"

#define UNSURE_DOUBT 5  /* looks at something that is not sure, until everything is read again, */
#define UNSURE_MAX   40 /* and until it is taken for gone */

static void tell_entry(struct watch *watch, struct watch_entry *entry);

/* ---- lines ---- */

static void tell_line(struct watch *watch, const struct watch_entry *entry,
	const struct watch_seen *seen, struct watch_change change)
{
	scoped_str struct str path = {0};

	watch_tree_add_path(entry, &path);
	change.path = path.p ? path.p : "";
	change.mode = seen->mode;
	change.uid = seen->uid;
	change.gid = seen->gid;
	change.size = seen->size;
	change.links = seen->links;
	if (change.at_ns == 0)
		change.at_ns = entry->item.last_ns ? entry->item.last_ns : watch->now_ns;
	watch->config.tell(watch->config.arg, &change);
}

void watch_tell_rename(struct watch *watch, const char *from, struct watch_entry *folder)
{
	tell_line(watch, folder, &folder->told,
		(struct watch_change){.kind = WATCH_RENAMED, .from = from, .at_ns = watch->now_ns});
}

void watch_tell_unwatched(struct watch *watch, const struct watch_entry *folder, const char *reason)
{
	static const struct watch_seen as_folder = {.mode = S_IFDIR};

	tell_line(watch, folder, folder->told.mode ? &folder->told : &as_folder,
		(struct watch_change){
			.kind = WATCH_UNWATCHED, .reason = reason, .at_ns = watch->now_ns});
}

void watch_tell_end(struct watch *watch)
{
	struct watch_entry *only =
		watch->only ? watch_tree_find(&watch->tree, &watch->tree.root, watch->only) : NULL;

	if (!watch->only)
		watch_tell_plain(watch, WATCH_DELETED,
			watch->is_moved ? "it was moved to another place" : NULL);
	else if (only)
		watch_tell_gone(watch, only);
}

void watch_tell_plain(struct watch *watch, enum watch_kind kind, const char *reason)
{
	tell_line(watch, &watch->tree.root, &watch->tree.root.told,
		(struct watch_change){.kind = kind,
			.reason = reason,
			.at_ns = clock_mono_ns(),
			.entries =
				kind == WATCH_DELETED ? watch_tree_count(&watch->tree.root) : 0});
}

/* ---- what is gone ---- */

static void vanish(struct watch *watch, struct watch_entry *entry)
{
	entry->why = 0;
	entry->n_unsure = 0;
	settle_drop(&watch->tree.settle, &entry->item);
	if (!entry->parent || watch->is_ending) {
		watch->may_be_gone = true;
		return;
	}
	watch_tree_set_gone(&watch->tree, entry, true);
	settle_note(&watch->tree.settle, &entry->parent->going, SETTLE_GONE, false, watch->now_ns);
}

/* What lies there is not to be known now: events of its moving, or of a folder above, are on their way. Where none comes,
 * what is known is wrong. false: that was long ago, and reading did not help. */
static bool may_wait(struct watch *watch, struct watch_entry *entry)
{
	if (++entry->n_unsure == UNSURE_DOUBT)
		watch->is_doubtful = true;
	if (entry->n_unsure <= UNSURE_MAX)
		return true;
	entry->n_unsure = 0;
	return false;
}

static void wait_more(struct watch *watch, struct watch_entry *entry)
{
	int64_t last_ns = entry->item.last_ns;

	if (watch->is_ending)
		return;
	settle_note(&watch->tree.settle, &entry->item, SETTLE_CLOSED, false, watch->now_ns);
	entry->item.last_ns = last_ns; /* nothing more happened to it */
}

/* Files that were moved out of what is gone are told as moved, before that. */
static void tell_moved_out(struct watch *watch, struct watch_entry *gone)
{
	struct watch_entry **moved = NULL;
	size_t n = 0, room = 0;

	for (struct watch_entry *e = gone; e; e = watch_tree_walk(gone, e)) {
		if (!e->to || e->to->is_gone)
			continue;
		if (n == room) {
			room = room ? room * 2 : 16;
			moved = mem_grow(moved, room, sizeof(struct watch_entry *));
		}
		moved[n++] = e->to;
	}
	for (size_t i = 0; i < n; i++)
		if (moved[i]->from && moved[i]->item.at)
			tell_entry(watch, moved[i]);
	free(moved);
}

/* What was told lies in folders that were told, by their names here, even if they are going themselves. */
static void tell_deleted(struct watch *watch, struct watch_entry *entry, int64_t at_ns)
{
	if (entry->told.mode)
		tell_line(watch, entry, &entry->told,
			(struct watch_change){.kind = WATCH_DELETED,
				.at_ns = at_ns,
				.entries = watch_tree_count(entry)});
}

static void remove_gone(struct watch *watch, struct watch_entry *entry, int64_t at_ns)
{
	tell_deleted(watch, entry, at_ns);
	watch_tree_remove(&watch->tree, entry);
}

void watch_tell_gone(struct watch *watch, struct watch_entry *entry)
{
	tell_moved_out(watch, entry);
	remove_gone(watch, entry, watch->now_ns);
}

void watch_tell_anew(struct watch *watch, struct watch_entry *folder)
{
	tell_moved_out(watch, folder);
	tell_deleted(watch, folder, watch->now_ns);
	for (struct watch_entry *e = folder; e; e = watch_tree_walk(folder, e)) {
		if (e->to)
			e->to->from = NULL;
		e->to = NULL;
		watch_tree_tell(&watch->tree, e, &(struct watch_seen){0});
		if (!e->is_gone)
			watch_event_touched(watch, e, WATCH_WHY_MADE);
	}
}

/* What goes from a folder. Looked up once more, since a name can be there again by now. */
static void tell_going(struct watch *watch, struct watch_entry *folder, int64_t at_ns)
{
	struct watch_seen seen;

	for (const struct watch_entry *e = folder; e->parent; e = e->parent)
		if (e->is_gone && watch->is_ending) {
			return;
		} else if (e->is_gone) { /* it goes itself, and they are told with it */
			settle_note(&watch->tree.settle, &folder->going, SETTLE_GONE, false,
				watch->now_ns);
			return;
		}
	if (!watch->is_ending && watch_look_folder(watch, folder) < 0 && may_wait(watch, folder)) {
		settle_note(&watch->tree.settle, &folder->going, SETTLE_GONE, false, watch->now_ns);
		return;
	}
	folder->n_unsure = 0;
	for (struct watch_entry *e = folder->first; e; e = e->next)
		if (e->is_gone)
			tell_moved_out(watch, e);
	for (struct watch_entry *e = folder->first, *next; e; e = next) {
		next = e->next;
		if (!e->is_gone)
			continue;
		if (e->told.mode && !watch->is_ending && watch_look(watch, e, &seen) == 0 &&
			(!e->is_folder || watch_scan_is_same(watch, e))) {
			watch_tree_set_gone(&watch->tree, e, false);
			watch_event_touched(watch, e, WATCH_WHY_COMPARE | WATCH_WHY_LOOK);
			watch->has_unread |= e->is_folder && e->wd < 0;
			continue;
		}
		remove_gone(watch, e, at_ns);
	}
}

/* ---- what is there ---- */

bool watch_tell_folder(struct watch *watch, struct watch_entry *folder)
{
	for (;;) {
		struct watch_entry *untold = NULL;

		for (struct watch_entry *e = folder; e->parent; e = e->parent) {
			if (e->is_gone)
				return false;
			if (!e->told.mode)
				untold = e;
		}
		if (!untold)
			return true;
		tell_entry(watch, untold);
		if (!untold->told.mode)
			return false;
	}
}

/* A file that was found new, without the kernel's word for where it came from: its folder was not watched yet then. */
static void find_source(
	struct watch *watch, struct watch_entry *entry, const struct watch_seen *now)
{
	struct watch_entry *e = NULL;

	if (entry->from || entry->told.mode || entry->is_folder)
		return;
	while ((e = watch_tree_find_inode(&watch->tree, now, e)))
		if (e->is_gone && e->is_moving && !e->to && e->told.size == now->size &&
			e->told.mtime_ns == now->mtime_ns) {
			entry->from = e;
			e->to = entry;
			return;
		}
}

/* The other names of a file that was written or changed. */
static void tell_links(struct watch *watch, struct watch_entry *entry, const struct watch_seen *now,
	const struct watch_change *change)
{
	struct watch_entry *others[64], *e = NULL;
	size_t n = 0;

	if (now->links < 2 || change->replaced ||
		(change->kind != WATCH_WRITTEN && change->kind != WATCH_MODE))
		return;
	while (n < sizeof(others) / sizeof(others[0]) &&
		(e = watch_tree_find_inode(&watch->tree, now, e)))
		if (e != entry && !e->is_gone && e->why == 0)
			others[n++] = e;
	for (size_t i = 0; i < n; i++) {
		tell_line(watch, others[i], now, *change);
		watch_tree_tell(&watch->tree, others[i], now);
	}
}

/* What was told where it came from is told of no more. */
static void leave_source(struct watch *watch, struct watch_entry *entry)
{
	struct watch_entry *source = entry->from;

	entry->from = NULL;
	if (source->to != entry)
		return;
	source->to = NULL;
	watch_tree_tell(&watch->tree, source, &(struct watch_seen){0});
}

static void tell_lines(struct watch *watch, struct watch_entry *entry, const struct watch_seen *now)
{
	struct watch_seen before = entry->told, came = {0};
	struct watch_fold_line lines[WATCH_FOLD_MAX];
	scoped_str struct str from = {0};
	size_t n;

	if (entry->from) {
		came = entry->from->told;
		if (!came.mode || entry->from->to != entry)
			came = *now; /* its old name was told anew meanwhile */
		watch_tree_add_path(entry->from, &from);
	}
	n = watch_fold(&before, from.p ? &came : NULL, now, entry->why, lines);
	if (entry->from)
		leave_source(watch, entry);
	for (size_t i = 0; i < n; i++) {
		struct watch_change change = {.kind = lines[i].kind,
			.from = lines[i].kind == WATCH_RENAMED ? from.p : NULL,
			.replaced = lines[i].replaced,
			.at_ns = entry->item.last_ns,
			.is_writing = entry->is_writing && lines[i].kind != WATCH_RENAMED};

		tell_line(watch, entry, lines[i].kind == WATCH_DELETED ? &before : now, change);
		tell_links(watch, entry, now, &change);
	}
}

/* Whether what is told now goes on: it was due for its age, not for its quiet. */
static bool goes_on(const struct watch *watch, const struct watch_entry *entry)
{
	return entry->is_open &&
	       watch->now_ns < entry->item.last_ns + SETTLE_WRITING_MS * CLOCK_NS_PER_MS;
}

static void tell_there(struct watch *watch, struct watch_entry *entry, const struct watch_seen *now)
{
	bool is_away = watch->only && entry->parent && !entry->parent->parent;

	entry->n_unsure = 0;
	entry->is_writing = goes_on(watch, entry);
	tell_lines(watch, entry, now);
	watch_tree_tell(&watch->tree, entry, now);
	entry->why = 0;
	settle_drop(&watch->tree.settle, &entry->item);
	if (is_away && strcmp(entry->name, watch->only) != 0) {
		watch_tree_tell(&watch->tree, entry, &(struct watch_seen){0}); /* not asked for */
		vanish(watch, entry);
	}
}

/* As watch_look(); -ESTALE also where another thing lies there than the one that is known: a folder is known by its watch
 * alone, since it may have been looked at before another one came there and was watched. */
static int look_sure(struct watch *watch, struct watch_entry *entry, struct watch_seen *ret_now)
{
	int r = watch_look(watch, entry, ret_now);

	if (r < 0)
		return r;
	if (entry->is_folder != (S_ISDIR(ret_now->mode) != 0))
		return -ESTALE;
	if (!entry->is_folder || !entry->parent)
		return 0;
	return watch_scan_lies_at(watch, entry, entry->parent, entry->name) == WATCH_LIES_OTHER
	               ? -ESTALE
	               : 0;
}

static void tell_entry(struct watch *watch, struct watch_entry *entry)
{
	struct watch_seen now;
	int r;

	if (entry->is_telling)
		return;
	if (entry->parent && !watch_tell_folder(watch, entry->parent)) {
		wait_more(watch, entry);
		return;
	}
	entry->is_telling = true;
	if (entry->to && !entry->to->is_gone)
		tell_entry(watch, entry->to);
	r = look_sure(watch, entry, &now);
	if (entry->to && !entry->to->is_telling && !watch->is_ending) {
		wait_more(watch, entry); /* what was here is told first, or is gone */
	} else if (r == 0) {
		find_source(watch, entry, &now);
		tell_there(watch, entry, &now);
	} else if (r == -ESTALE && may_wait(watch, entry)) {
		wait_more(watch, entry);
	} else if (r == -ESTALE || r == -ENOENT) {
		vanish(watch, entry);
	}
	entry->is_telling = false;
}

void watch_tell_due(struct watch *watch)
{
	struct settle_item *item;

	while ((item = settle_take(
			&watch->tree.settle, watch->is_ending ? INT64_MAX : watch->now_ns))) {
		char *p = (char *)item;

		if (item->tag == WATCH_TAG_GOING)
			tell_going(watch, (void *)(p - offsetof(struct watch_entry, going)),
				item->last_ns);
		else
			tell_entry(watch, (void *)(p - offsetof(struct watch_entry, item)));
	}
}
