/* SPDX-License-Identifier: Apache-2.0 */
/* What was touched: one entry for each resolved absolute path.
 *
 * - read, written: opened so, successfully; a path opened as a mere handle (O_PATH) is neither. written also
 *   where it was truncated, or where what was written under another name was moved here.
 * - created: the path was not there before: made, linked, or moved here with a new folder. A move of the file itself says
 *   renamed_from, and replaced where something is known to have been there.
 * - deleted: unlinked or removed. A move says renamed_to and renamed_from instead.
 * - replaced: something was renamed or linked over it.
 * - denied: a try ended in EACCES or EPERM, and not by a call filter of the program's own. Any other failure makes no entry.
 * - bytes_read, bytes_written: through descriptors, where the source mounts tells them; those written to a file
 *   that was moved count where it is now.
 * - A folder that moves makes one pair of entries; what was written below it counts under its new place too.
 *
 * Events are put in order first (view/reorder.h). Memory goes by distinct paths, and by who touched them
 * up to IDSET_MAX each. */
#ifndef VIEW_FILE_TABLE_H
#define VIEW_FILE_TABLE_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/idset.h"
#include "view/view_filter.h"
#include "view/view_text.h"

struct file_entry {
	struct slice path;
	struct slice renamed_to, renamed_from; /* the last ones; empty: none */
	bool read, written, created, deleted, replaced, denied, mode_changed, directory, unresolved;
	struct idset
		processes; /* pids, and after file_table_settle() those who wrote what was moved here */
	struct idset execs; /* for file_table_execs() */
	bool has_bytes;
	int64_t bytes_read;
	int64_t bytes_kept, bytes_moved; /* written: here for good, and to what stands here now */
};

struct file_table;

struct file_table *file_table_new(const struct view_filter *filter);
void file_table_free(struct file_table *table);
SCOPED_TYPE(file_table)

void file_table_add(struct file_table *table, const struct event *ev);
/* The same for a caller that puts events in order itself. */
void file_table_take(struct file_table *table, const struct event *ev);

/* Takes in what is still held back and sorts what the filter shows by path; returns how many that are. Those
 * below do it first; more events may follow. */
size_t file_table_settle(struct file_table *table);
const struct file_entry *file_table_get(const struct file_table *table, size_t i);
const struct file_entry *file_table_find(
	const struct file_table *table, struct slice path); /* noise too; NULL */
int64_t file_entry_written(const struct file_entry *entry); /* bytes */
const struct slice *file_table_execs(
	const struct file_table *table); /* names of execs, by the ids of file_entry.execs */

/* `files --json`. */
void file_table_json(struct file_table *table, struct str *out);
void file_table_text(struct file_table *table, const struct view_style *style, struct str *out);

#endif
