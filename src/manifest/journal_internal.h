/* SPDX-License-Identifier: Apache-2.0 */
/* What journal.c knows and journal_file.c reads and writes. */
#ifndef MANIFEST_JOURNAL_INTERNAL_H
#define MANIFEST_JOURNAL_INTERNAL_H

#include "manifest/change_set.h"
#include "manifest/journal.h"
#include "util/map.h"
#include "util/str.h"

#define JOURNAL_MOUNTS_MAX CHANGE_SET_LAYERS_MAX

struct journal_mount {
	bool has_begun;
	struct renames *renames; /* NULL: nothing is known of the mount */
	struct map *temporaries; /* as a set */
	struct map *touched;     /* inode of a folder to its time of change in ns */
};

struct journal {
	char *dir;
	int fd;          /* opened at the first line written */
	bool torn;       /* the last line that is there has no end */
	int failure;     /* of the last write that failed */
	struct str owed; /* lines to write before the next one */
	struct map *paths;
	const void *newest; /* of them: the one of the last act since it was opened */
	struct journal_mount mounts[JOURNAL_MOUNTS_MAX];
};

/* NULL where n is none. */
struct journal_mount *journal_mount(struct journal *journal, int n);
void journal_remember(
	struct journal *journal, int n, struct slice path, const struct journal_entry *entry);
void journal_remember_rename(struct journal *journal, int n, const struct rename *rename);
/* Where its own line was torn, the last one is another, and stays. */
void journal_forget_rename(struct journal *journal, int n, const char *from, const char *to);
void journal_remember_begun(struct journal *journal, int n);
void journal_remember_temporary(struct journal *journal, int n, struct slice path);
void journal_remember_touched(struct journal *journal, int n, uint64_t inode, int64_t ctime_ns);
void journal_forget_temporaries(struct journal *journal, int n);

#endif
