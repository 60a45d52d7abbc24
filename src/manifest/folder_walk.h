/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at every entry below a folder by its stamps alone, with several threads, beside an earlier snapshot of it. No
 * link is followed, no mount entered, no file opened. */
#ifndef MANIFEST_FOLDER_WALK_H
#define MANIFEST_FOLDER_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "manifest/snapshot.h"

struct statx;

/* The folder whose entries are being looked at. */
struct walk_folder {
	const char *path; /* below the root, "" for itself */
	int fd;
	uint32_t old;  /* its record in the earlier snapshot, or SNAPSHOT_NONE */
	uint64_t mark; /* what its visit() left */
};

struct walk_entry {
	const char *name;
	const struct statx *st;
	uint32_t
		old; /* record of the same path earlier, or SNAPSHOT_NONE. For a folder: visit() may put in another one,
	                * whose entries its own are the successors of */
	uint64_t mark; /* of a folder: for its entries */
};

struct folder_walk {
	int root_fd;                /* borrowed */
	const struct snapshot *old; /* NULL: none */
	const bool *stop;           /* NULL, or atomic: give up */
	bool list_all; /* also folders whose stamps say that they hold the same names as before */
	/* By one thread for each worker, n of them. False: do not enter this folder. */
	bool (*visit)(void *worker, const struct walk_folder *folder, struct walk_entry *entry);
	/* A folder could not be listed, though it was there: -errno. Or an entry of it could not be looked at, which
	 * then has a name and no st; -EXDEV where what is mounted there lets nobody look. */
	void (*fail)(void *worker, const struct walk_folder *folder, const struct walk_entry *entry,
		int r);
	void *const *workers;
	size_t n_workers;
};

/* Everything below start, whose path, old and mark are used; it is not visited itself. */
void folder_walk_run(const struct folder_walk *walk, const struct walk_folder *start);

int64_t folder_walk_ns(int64_t sec, uint32_t nsec);

#endif
