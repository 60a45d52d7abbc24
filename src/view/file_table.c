/* SPDX-License-Identifier: Apache-2.0 */
#include "view/file_table.h"

#include <errno.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "view/file_access.h"
#include "view/intern.h"
#include "view/live_files.h"
#include "view/mount_event.h"
#include "view/reorder.h"
#include "view/saturate.h"

struct file_table {
	struct view_filter filter;
	struct mount_event mounts;
	struct reorder *reorder;
	struct intern *intern;
	struct map *entries; /* path to struct file_entry */
	struct live_files *live;
	struct map *exec_ids; /* exec to its number */
	struct slice *execs;
	size_t n_execs, last_exec;
	struct file_entry **shown;
	size_t n_shown;
};

struct file_table *file_table_new(const struct view_filter *filter)
{
	struct file_table *table = new0(struct file_table);

	table->filter = *filter;
	table->reorder = reorder_new();
	table->intern = intern_new();
	table->entries = map_new();
	table->live = live_files_new();
	table->exec_ids = map_new();
	return table;
}

void file_table_free(struct file_table *table)
{
	struct slice key;
	void *value;

	if (!table)
		return;
	for (size_t i = 0; map_next(table->entries, &i, &key, &value);) {
		struct file_entry *entry = value;

		idset_done(&entry->processes);
		idset_done(&entry->execs);
		free(entry);
	}
	map_free(table->entries);
	map_free(table->exec_ids);
	live_files_free(table->live);
	intern_free(table->intern);
	reorder_free(table->reorder);
	free(table->execs);
	free(table->shown);
	free(table);
}

static struct file_entry *entry_at(struct file_table *table, struct slice path)
{
	void **slot = map_slot(table->entries, path);
	struct file_entry *entry = *slot;

	if (entry)
		return entry;
	entry = *slot = new0(struct file_entry);
	entry->path = intern_text(table->intern, path);
	entry->unresolved = path.len == 0 || path.p[0] != '/';
	return entry;
}

static int64_t exec_id(struct file_table *table, struct slice exec)
{
	void **slot;

	if (table->n_execs && slice_eq(table->execs[table->last_exec], exec))
		return (int64_t)table->last_exec;
	slot = map_slot(table->exec_ids, exec);
	if (!*slot) {
		table->execs = mem_grow(table->execs, table->n_execs + 1, sizeof(*table->execs));
		table->execs[table->n_execs++] = intern_text(table->intern, exec);
		*slot = (void *)(uintptr_t)table->n_execs;
	}
	table->last_exec = (size_t)(uintptr_t)*slot - 1;
	return (int64_t)table->last_exec;
}

static void note_who(struct file_table *table, const struct event *ev, struct idset *processes,
	struct idset *execs)
{
	if (ev->pid)
		idset_add(processes, ev->pid);
	if (ev->exec.len)
		idset_add(execs, exec_id(table, ev->exec));
}

static struct file_entry *touch(struct file_table *table, const struct event *ev, struct slice path)
{
	struct file_entry *entry = entry_at(table, path);

	note_who(table, ev, &entry->processes, &entry->execs);
	if (event_has(ev, path_unresolved) && ev->path_unresolved)
		entry->unresolved = true;
	return entry;
}

/* Whether the call failed; notes where it was refused. */
static bool is_failed(struct file_table *table, const struct event *ev, struct slice path)
{
	if (!event_has(ev, result) || ev->result == 0)
		return false;
	if ((ev->result == EACCES || ev->result == EPERM) && path.len && !event_has(ev, own_filter))
		touch(table, ev, path)->denied = true;
	return true;
}

/* What stands at this path from now on was written or made here. */
static void note_content(struct file_table *table, const struct event *ev, struct slice path,
	bool written, bool created)
{
	struct live_facts *facts;

	/* What stands at the path of a file that has none any more is another one, or nothing. */
	if (path.p[0] != '/' || slice_is(ev->path_state, "deleted"))
		return;
	facts = live_files_get(table->live, path);
	facts->written |= written;
	facts->created |= created;
	note_who(table, ev, &facts->processes, &facts->execs);
}

static void take_open(struct file_table *table, const struct event *ev)
{
	struct file_entry *entry;
	bool writes, creates;

	if (ev->path.len == 0 || is_failed(table, ev, ev->path))
		return;
	creates = file_access_made(ev);
	writes = file_access_changes(ev);
	if (!writes && !creates && !file_access_reads(ev))
		return;
	entry = touch(table, ev, ev->path);
	entry->read |= file_access_reads(ev);
	entry->written |= writes;
	entry->created |= creates;
	entry->directory |= event_has(ev, directory) && ev->directory;
	if (writes || creates)
		note_content(table, ev, entry->path, writes, creates);
}

/* What was written to the file that stands here stays told here when the file goes. */
static void keep_bytes(struct file_table *table, struct file_entry *entry)
{
	struct live_facts *facts = live_files_find(table->live, entry->path);

	if (!facts)
		return;
	entry->bytes_kept = saturate_add(entry->bytes_kept, facts->bytes_written);
	facts->bytes_written = 0;
}

static void take_close(struct file_table *table, const struct event *ev)
{
	struct file_entry *entry;

	if (ev->path.len == 0)
		return;
	entry = touch(table, ev, ev->path);
	entry->written |= event_has(ev, witness) && file_access_writes(ev);
	if (!event_has(ev, bytes_read) || !event_has(ev, bytes_written))
		return;
	entry->has_bytes = true;
	entry->bytes_read = saturate_add(entry->bytes_read, ev->bytes_read);
	if (ev->path.p[0] != '/' || slice_is(ev->path_state, "deleted")) {
		entry->bytes_kept = saturate_add(entry->bytes_kept, ev->bytes_written);
	} else if (ev->bytes_written > 0) {
		struct live_facts *facts = live_files_get(table->live, entry->path);

		facts->bytes_written = saturate_add(facts->bytes_written, ev->bytes_written);
	}
}

static void take_rename(struct file_table *table, const struct event *ev)
{
	struct file_entry *from, *to;
	bool is_failure;

	if (ev->from.len == 0 || ev->to.len == 0)
		return;
	is_failure = is_failed(table, ev, ev->from);
	if (is_failed(table, ev, ev->to) || is_failure || slice_eq(ev->from, ev->to))
		return;
	from = touch(table, ev, ev->from);
	to = touch(table, ev, ev->to);
	from->renamed_to = to->path;
	to->renamed_from = from->path;
	if (event_has(ev, exchange) && ev->exchange) {
		to->renamed_to = from->path;
		from->renamed_from = to->path;
		from->replaced = to->replaced = true;
		live_files_swap(table->live, from->path, to->path);
		return;
	}
	to->directory |= from->directory |= event_has(ev, directory) && ev->directory;
	to->replaced |= event_has(ev, replaced) && ev->replaced;
	keep_bytes(table, to);
	live_files_move(table->live, from->path, to->path);
}

static void take_delete(struct file_table *table, const struct event *ev)
{
	struct file_entry *entry;

	if (ev->path.len == 0 || is_failed(table, ev, ev->path))
		return;
	entry = touch(table, ev, ev->path);
	entry->deleted = true;
	entry->directory |= event_has(ev, directory) && ev->directory;
	keep_bytes(table, entry);
	live_files_delete(table->live, entry->path);
}

static void take_truncate(struct file_table *table, const struct event *ev)
{
	if (ev->path.len == 0 || is_failed(table, ev, ev->path))
		return;
	touch(table, ev, ev->path)->written = true;
	note_content(table, ev, ev->path, true, false);
}

/* path is the new name, target what it stands for: a file, or any text where it is symbolic. */
static void take_link(struct file_table *table, const struct event *ev)
{
	bool is_symbolic = event_has(ev, symbolic) && ev->symbolic;
	const struct live_facts *source = NULL;
	struct live_facts *facts;
	struct file_entry *entry;

	if (ev->path.len == 0 || is_failed(table, ev, ev->path))
		return;
	entry = touch(table, ev, ev->path);
	entry->created = true;
	if (!is_symbolic && ev->target.len)
		source = live_files_find(table->live, ev->target);
	note_content(table, ev, entry->path, source && source->written, true);
	if (!source || !source->written)
		return;
	entry->written = true;
	facts = live_files_get(table->live, entry->path);
	idset_add_all(&facts->processes, &source->processes);
	idset_add_all(&facts->execs, &source->execs);
}

static void take_mode(struct file_table *table, const struct event *ev)
{
	if (ev->path.len && !is_failed(table, ev, ev->path))
		touch(table, ev, ev->path)->mode_changed = true;
}

static void take_folder(struct file_table *table, const struct event *ev)
{
	struct file_entry *entry;

	if (ev->path.len == 0 || is_failed(table, ev, ev->path))
		return;
	entry = touch(table, ev, ev->path);
	entry->created = entry->directory = true;
}

static const struct {
	enum event_kind kind;
	void (*fold)(struct file_table *table, const struct event *ev);
} takers[] = {
	{EVENT_FILE_OPEN, take_open},
	{EVENT_FILE_RENAME, take_rename},
	{EVENT_FILE_DELETE, take_delete},
	{EVENT_FILE_TRUNCATE, take_truncate},
	{EVENT_FILE_LINK, take_link},
	{EVENT_FILE_MODE, take_mode},
	{EVENT_DIR_CREATE, take_folder},
	{EVENT_MOUNT_CLOSE, take_close},
};

void file_table_take(struct file_table *table, const struct event *ev)
{
	if (!view_filter_takes(&table->filter, ev) || file_access_is_nowhere(ev))
		return;
	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (takers[i].kind == ev->kind)
			takers[i].fold(table, ev);
	if (ev->kind == EVENT_PROCESS_EXEC)
		(void)is_failed(
			table, ev, ev->path); /* a program that may not be run was denied, too */
}

void file_table_add(struct file_table *table, const struct event *ev)
{
	bool is_ours;

	ev = mount_event_take(&table->mounts, ev);
	if (!ev)
		return;
	is_ours = (ev->kind >= EVENT_FILE_OPEN && ev->kind <= EVENT_DIR_CREATE) ||
	          ev->kind == EVENT_MOUNT_CLOSE;
	if (!is_ours && !(ev->kind == EVENT_PROCESS_EXEC && event_has(ev, result)))
		return;
	reorder_push(table->reorder, ev);
	while ((ev = reorder_pop(table->reorder, false)))
		file_table_take(table, ev);
}

/* What was written elsewhere and moved here, itself or with a folder above it. */
static void carry(struct file_table *table)
{
	scoped_str struct str path = {0};
	const struct live_facts *facts;
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(table->entries, &i, &key, &value);)
		((struct file_entry *)value)->bytes_moved = 0;
	for (void *at = NULL; live_files_next(table->live, &at, &path, &facts);) {
		struct file_entry *entry = entry_at(table, str_slice(&path));

		entry->written |= facts->written;
		entry->bytes_moved = facts->bytes_written;
		entry->has_bytes |= facts->bytes_written > 0;
		if (!entry->renamed_from.len)
			entry->created |= facts->created;
		idset_add_all(&entry->processes, &facts->processes);
		idset_add_all(&entry->execs, &facts->execs);
	}
}

static bool is_noise(const struct file_entry *entry)
{
	if (entry->denied)
		return false;
	if (view_filter_is_kernel_path(entry->path))
		return true;
	return entry->read && !entry->written && !entry->created && !entry->deleted &&
	       !entry->replaced && !entry->mode_changed && !entry->renamed_to.len &&
	       !entry->renamed_from.len && view_filter_is_library(entry->path);
}

static int compare(const void *a, const void *b)
{
	struct slice left = (*(struct file_entry *const *)a)->path,
		     right = (*(struct file_entry *const *)b)->path;
	int r = memcmp(left.p, right.p, left.len < right.len ? left.len : right.len);

	return r ? r : (left.len > right.len) - (left.len < right.len);
}

size_t file_table_settle(struct file_table *table)
{
	const struct event *ev;
	struct slice key;
	void *entry;

	while ((ev = reorder_pop(table->reorder, true)))
		file_table_take(table, ev);
	carry(table);
	table->shown = mem_grow(table->shown, map_len(table->entries), sizeof(struct file_entry *));
	table->n_shown = 0;
	for (size_t i = 0; map_next(table->entries, &i, &key, &entry);)
		if (table->filter.noise || !is_noise(entry))
			table->shown[table->n_shown++] = entry;
	qsort(table->shown, table->n_shown, sizeof(struct file_entry *), compare);
	return table->n_shown;
}

const struct file_entry *file_table_get(const struct file_table *table, size_t i)
{
	return table->shown[i];
}

const struct file_entry *file_table_find(const struct file_table *table, struct slice path)
{
	return map_find(table->entries, path);
}

int64_t file_entry_written(const struct file_entry *entry)
{
	return saturate_add(entry->bytes_kept, entry->bytes_moved);
}

const struct slice *file_table_execs(const struct file_table *table)
{
	return table->execs;
}
