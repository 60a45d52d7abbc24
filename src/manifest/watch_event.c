/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says happened, noted with the names. Order is the kernel's; that a name is there or not follows from the
 * events alone, what it is like is looked up when it is told. */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/watch_internal.h"
#include "util/clock.h"

#define READ_BYTES  (64 * 1024)
#define READS_MAX   64 /* in a row: then what has settled is told */
#define REREAD_NS   CLOCK_NS_PER_S
#define SELF_EVENTS (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)

/* ---- renames: two events with one cookie, the second mostly right behind the first ---- */

static void note_source(struct watch *watch, struct watch_entry *entry, uint32_t cookie)
{
	watch->moves[watch->next_move++ % WATCH_MOVES] =
		(struct watch_move){.cookie = cookie, .entry = entry};
	entry->is_source = true;
}

static struct watch_entry *take_source(struct watch *watch, uint32_t cookie)
{
	for (size_t i = 0; i < WATCH_MOVES; i++) {
		struct watch_move *move = &watch->moves[(watch->next_move - 1 - i) % WATCH_MOVES];

		if (move->entry && move->cookie == cookie) {
			struct watch_entry *entry = move->entry;

			move->entry = NULL;
			return entry->is_gone ? entry : NULL;
		}
	}
	return NULL;
}

/* The name that was told of what lay at a name that it left: NULL where that was never told. */
static struct watch_entry *told_source(struct watch_entry *left)
{
	if (left->from)
		return left->from;
	return left->told.mode && !left->to && !(left->why & WATCH_WHY_MADE) ? left : NULL;
}

static void unpair(struct watch_entry *entry)
{
	if (entry->from)
		entry->from->to = NULL;
	entry->from = NULL;
}

/* A file that left one name is at another. */
static void pair(struct watch *watch, struct watch_entry *entry, struct watch_entry *left)
{
	struct watch_entry *source = told_source(left);

	entry->why |= left->why & (WATCH_WHY_WRITE | WATCH_WHY_COMPARE);
	left->why = 0;
	unpair(left);
	unpair(entry);
	if (source == entry) { /* and is back at the first one */
		entry->why = (entry->why & ~(unsigned)WATCH_WHY_MADE) | WATCH_WHY_COMPARE;
	} else if (source) {
		entry->from = source;
		source->to = entry;
	}
	if (left != entry && left != source && !left->told.mode)
		watch_tree_remove(&watch->tree, left);
}

void watch_event_moved_folder(struct watch *watch, struct watch_entry *source,
	struct watch_entry *parent, const char *name)
{
	scoped_str struct str from = {0};

	if (watch_tree_is_in(parent, source)) {
		watch->is_doubtful = true; /* more was moved than was told yet */
		return;
	}
	if (source->told.mode && !watch_tell_folder(watch, parent))
		watch_tell_anew(watch, source);
	watch_tree_add_path(source, &from);
	watch_tree_move(&watch->tree, source, parent, name);
	watch_event_touched(watch, source, source->told.mode ? WATCH_WHY_LOOK : WATCH_WHY_MADE);
	if (source->told.mode)
		watch_tell_rename(watch, from.p, source);
}

/* ---- names ---- */

void watch_event_touched(struct watch *watch, struct watch_entry *entry, unsigned why)
{
	enum settle_pace pace = why & WATCH_WHY_WRITE ? SETTLE_WRITING : SETTLE_CLOSED;

	entry->why |= why;
	settle_note(&watch->tree.settle, &entry->item, pace, entry->is_writing, watch->now_ns);
}

void watch_event_gone(struct watch *watch, struct watch_entry *entry)
{
	bool is_moving = entry->is_moving;

	settle_drop(&watch->tree.settle, &entry->item);
	if (!entry->told.mode && !is_moving) {
		watch_tree_remove(&watch->tree, entry);
		return;
	}
	if (!is_moving)
		unpair(entry);
	watch_tree_set_gone(&watch->tree, entry, true);
	entry->is_moving = is_moving;
	settle_note(&watch->tree.settle, &entry->parent->going, SETTLE_GONE, false, watch->now_ns);
}

static struct watch_entry *make(
	struct watch *watch, struct watch_entry *folder, const char *name, bool is_folder)
{
	struct watch_entry *entry;

	if (watch->tree.n >= watch->config.entries_max) {
		if (!folder->is_left_out)
			watch_tell_unwatched(watch, folder, "too many files");
		folder->is_left_out = true;
		return NULL;
	}
	entry = watch_tree_add(&watch->tree, folder, name);
	entry->is_folder = is_folder;
	return entry;
}

void watch_event_made(struct watch *watch, struct watch_entry *folder, const char *name,
	bool is_folder, uint32_t cookie)
{
	struct watch_entry *entry = watch_tree_find(&watch->tree, folder, name), *source;

	if (entry && (entry->is_folder || is_folder)) {
		if (is_folder && !entry->is_gone && watch_scan_is_same(watch, entry)) {
			watch_event_touched(watch, entry, WATCH_WHY_LOOK);
			return; /* it was read ahead; what was looked at before may be another one */
		}
		watch_tell_gone(watch, entry);
		entry = NULL;
	}
	source = cookie ? take_source(watch, cookie) : NULL; /* after that: telling frees names */
	if (source && source->is_folder != is_folder)
		source = NULL;
	/* What was read may have been ahead of the events: then another one left that name. */
	if (source && is_folder &&
		watch_scan_lies_at(watch, source, folder, name) != WATCH_LIES_OTHER) {
		watch_event_moved_folder(watch, source, folder, name);
		if (source->wd < 0) /* it had moved on before it could be read */
			(void)watch_scan(watch, source, WATCH_SCAN_NEW);
		return;
	}
	if (!entry)
		entry = make(watch, folder, name, is_folder);
	if (!entry)
		return;
	watch_tree_set_gone(&watch->tree, entry, false);
	watch_event_touched(watch, entry, WATCH_WHY_MADE);
	if (is_folder)
		(void)watch_scan(watch, entry, WATCH_SCAN_NEW);
	else if (source && !is_folder)
		pair(watch, entry, source);
	else
		unpair(entry);
}

/* ---- events ---- */

/* Writes to devices and pipes change no file. */
static bool is_content(const struct watch_entry *entry)
{
	return !entry->is_folder && (!entry->told.mode || S_ISREG(entry->told.mode));
}

static void on_change(struct watch *watch, struct watch_entry *entry, uint32_t mask)
{
	if ((mask & IN_MODIFY) && is_content(entry)) {
		entry->is_open = true;
		watch_event_touched(watch, entry, WATCH_WHY_WRITE);
	}
	if ((mask & IN_CLOSE_WRITE) && is_content(entry)) {
		entry->is_open = false;
		watch_event_touched(watch, entry, WATCH_WHY_COMPARE);
	}
	if (mask & IN_ATTRIB)
		watch_event_touched(watch, entry, WATCH_WHY_LOOK);
}

static void on_name(struct watch *watch, struct watch_entry *folder, const struct inotify_event *ev)
{
	struct watch_entry *entry = watch_tree_find(&watch->tree, folder, ev->name);

	if (ev->mask & (IN_CREATE | IN_MOVED_TO)) {
		watch_event_made(watch, folder, ev->name, (ev->mask & IN_ISDIR) != 0,
			ev->mask & IN_MOVED_TO ? ev->cookie : 0);
	} else if (entry && (ev->mask & IN_MOVED_FROM)) {
		entry->is_moving = true;
		watch_event_gone(watch, entry);
		note_source(watch, entry, ev->cookie);
	} else if (entry && (ev->mask & IN_DELETE)) {
		entry->is_moving = false;
		watch_event_gone(watch, entry);
	} else if (entry && !entry->is_gone) {
		on_change(watch, entry, ev->mask);
	}
}

static void on_self(struct watch *watch, struct watch_entry *entry, uint32_t mask)
{
	if (entry->parent && entry->is_folder)
		return; /* its folder tells the same */
	if (!entry->parent && (mask & SELF_EVENTS)) {
		watch->is_gone = true;
		watch->is_moved = (mask & IN_MOVE_SELF) != 0;
	} else if (entry->parent || !watch->only) {
		on_change(watch, entry, mask);
	}
}

/* The kernel gave up its watch. Where its folder does not tell why, it was unmounted: another one lies there. */
static void on_ignored(struct watch *watch, struct watch_entry *entry)
{
	watch_scan_give_up(watch, entry);
	watch->has_unread |= entry->is_folder && !entry->is_gone;
}

static bool is_asked_for(
	const struct watch *watch, const struct watch_entry *folder, const struct inotify_event *ev)
{
	if (!watch->only || folder->parent || strcmp(ev->name, watch->only) == 0)
		return true;
	for (size_t i = 0; (ev->mask & IN_MOVED_TO) && i < WATCH_MOVES; i++)
		if (watch->moves[i].entry && watch->moves[i].cookie == ev->cookie)
			return true; /* where the one that is asked for went */
	return false;
}

static void on_event(struct watch *watch, const struct inotify_event *ev)
{
	unsigned long long key = (unsigned)ev->wd;
	struct watch_entry *entry;

	if (ev->mask & IN_Q_OVERFLOW) {
		watch->has_overflown = true;
		return;
	}
	if (ev->wd == watch->parent_wd) {
		watch->may_be_gone = true;
		return;
	}
	entry = map_find(watch->wds, map_int_key(&key));
	if (!entry)
		return;
	if (ev->mask & IN_IGNORED)
		on_ignored(watch, entry);
	else if (ev->len == 0)
		on_self(watch, entry, ev->mask);
	else if (is_asked_for(watch, entry, ev))
		on_name(watch, entry, ev);
}

static void take_events(struct watch *watch, const char *p, size_t len)
{
	while (len >= sizeof(struct inotify_event)) {
		const struct inotify_event *ev = (const void *)p;
		size_t n = sizeof(*ev) + ev->len;

		on_event(watch, ev);
		p += n;
		len -= n;
	}
}

static void reread(struct watch *watch)
{
	if (!(watch->has_overflown || watch->is_doubtful) ||
		watch->now_ns < watch->reread_ns + REREAD_NS)
		return;
	watch->reread_ns = watch->now_ns;
	if (watch->has_overflown)
		watch_tell_plain(watch, WATCH_OVERFLOW,
			"more happened than the kernel keeps: the folder was read again");
	watch->has_overflown = watch->is_doubtful = false;
	(void)watch_scan(watch, &watch->tree.root, WATCH_SCAN_AGAIN);
	watch->reread_ns = clock_mono_ns();
}

int watch_event_read(struct watch *watch)
{
	_Alignas(struct inotify_event) char buffer[READ_BYTES];
	ssize_t n = 0;

	for (int i = 0; i < READS_MAX && (n = read(watch->inotify_fd, buffer, sizeof(buffer))) > 0;
		i++) {
		watch->now_ns = clock_mono_ns();
		take_events(watch, buffer, (size_t)n);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	reread(watch);
	return 0;
}
