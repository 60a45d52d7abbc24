/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of an rw scan share. rw_scan.h says how they work together. */
#ifndef MANIFEST_RW_INTERNAL_H
#define MANIFEST_RW_INTERNAL_H

#include <pthread.h>

#include "manifest/folder_walk.h"
#include "manifest/manifest_internal.h"
#include "manifest/rw_scan.h"

/* A folder whose place was another one's before: walked last. */
struct rw_later {
	char *path;
	uint32_t old;
	uint64_t mark;
	struct change_side now;
};

/* Which file it is, under whatever name. */
struct rw_identity {
	uint64_t dev, ino;
	int64_t btime_ns;
};

/* A new one, by its place in the list. */
struct rw_new {
	size_t item;
	struct rw_identity identity;
};

struct rw_scan {
	const struct rw_query *query;
	struct changes *out;
	unsigned char *met; /* for each record of before */
	unsigned char *
		doubt; /* likewise: it was opened for writing, whatever its stamps say; NULL: none was */
	pthread_mutex_t lock; /* of what follows */
	struct map *
		folders; /* identities of before's folders to their numbers + 1; NULL: not made yet */
	struct map *moved; /* numbers of folders that are elsewhere now, to their paths */
	struct rw_later *later;
	size_t n_later;
	uint32_t *unlisted; /* folders of before that could not be listed now */
	size_t n_unlisted;
};

/* walk_folder.mark */
#define RW_MARK_MOVED    1u /* its old record is of another path */
#define RW_MARK_UNLISTED 2u /* what was in it before is not known */

/* One thread's. */
struct rw_worker {
	struct rw_scan *scan;
	struct scan side; /* for scan_side_read(): its out is our own list */
	struct rw_new *news;
	size_t n_news;
};

/* rw_file.c */
void rw_side_of(
	const struct snapshot *before, const struct snapshot_record *r, struct change_side *side);
bool rw_is_as_it_was(const struct snapshot_record *r, const struct statx *st);
enum rw_touch rw_touch_of(const struct rw_scan *scan, const char *path);
/* Lists what became of a file whose stamps, or what was seen of it, say that it may be another one. */
void rw_file_compare(
	struct rw_worker *w, const struct walk_folder *folder, const struct walk_entry *entry);
/* Fills in what is there now. */
void rw_file_read(struct rw_worker *w, const struct walk_folder *folder,
	const struct walk_entry *entry, bool hash, struct change *c);
/* Sets the flags of what differs beside the content, and says whether anything does. */
bool rw_file_differs(struct change *c);

/* rw_gone.c: lists what nobody met, and finds renames in it. */
void rw_gone_list(struct rw_scan *scan, struct rw_new *news, size_t n_news);
/* The path now of a record, and its path before where that is another one (else NULL). */
bool rw_gone_paths(
	const struct rw_scan *scan, uint32_t record, struct str *now, struct str *before);

#endif
