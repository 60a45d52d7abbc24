/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a snapshot of a folder, or of one file: by stamps, which is quick, then hashes file by file, which may take its
 * time beside other work. */
#ifndef MANIFEST_SNAPSHOT_TAKE_H
#define MANIFEST_SNAPSHOT_TAKE_H

#include "manifest/snapshot.h"

struct snapshot_source {
	int root_fd; /* the folder or file, open for reading; borrowed */
	const struct snapshot *
		old; /* NULL, or an earlier one: hashes of files with the same stamps are taken from it */
	const bool *stop; /* NULL, or atomic: give up */
};

/* Writes it to dirfd under name. -ECANCELED where it was stopped. */
int snapshot_take(
	const struct snapshot_source *source, int dirfd, const char *name, struct err *err);

enum snapshot_reach {
	SNAPSHOT_REACH_RACY, /* only files so young that a write might leave their stamps as they are; some thousand */
	SNAPSHOT_REACH_MOST, /* but what is large, and what is only counted; in the caller's thread alone */
	SNAPSHOT_REACH_FULL, /* all, by several threads */
};
/* Reads the files that have no hash yet, and that are still as the snapshot says, and sets their hashes. */
void snapshot_hash(
	struct snapshot *snapshot, int root_fd, enum snapshot_reach reach, const bool *stop);

/* The young ones may have been written since: nothing is said of their content of before. */
void snapshot_doubt_racy(struct snapshot *snapshot);

/* Whether a file with this time of change, seen at seen_ns, may be written once more without a later stamp. */
bool snapshot_is_racy(int64_t ctime_ns, int64_t seen_ns);

#endif
