/* SPDX-License-Identifier: Apache-2.0 */
/* What changed below a folder that was written through (rw): its snapshot from before the first command beside what is
 * there now.
 *
 * How it works. All entries are looked at by their stamps, with several threads (folder_walk.h); one that is as it was
 * is passed over. Any other is read, by the thread that met it, and compared by content with the hash of before, where that is
 * known. A folder is what it was where its inode and time of birth say so, also under another name: then its entries are
 * compared with those of its old place. What the snapshot has and nobody met is gone; a new file that has the inode of
 * one of those is that one, renamed. A folder made anew at the place of an old one is walked last, when it is known
 * whether the old one has gone elsewhere. */
#ifndef MANIFEST_RW_SCAN_H
#define MANIFEST_RW_SCAN_H

#include "manifest/changes.h"
#include "manifest/snapshot.h"

/* What the sandbox was seen to do to a path. */
enum rw_touch {
	RW_UNTOUCHED,
	RW_TOUCHED, /* its rights, or that it is there */
	RW_WRITTEN, /* its content, too */
	RW_UNKNOWN, /* nobody watched, or not all was seen */
};

/* Absolute paths, as inside. */
struct rw_seen {
	enum rw_touch (*touch)(void *data, struct slice path); /* by any thread */
	/* The next path that was touched, while *i counts; false: no more. */
	bool (*next)(void *data, size_t *i, struct slice *ret_path);
	void *data;
};

struct rw_query {
	const struct change_layer *layer; /* guest path and ids */
	const struct snapshot *before;
	int root_fd;                /* the folder or file; borrowed */
	bool full;                  /* hash all, whatever the stamps say */
	const struct rw_seen *seen; /* NULL: nobody watched */
};

/* Fills changes (root and layer are set). */
int rw_scan(const struct rw_query *query, struct changes *changes, struct err *err);

#endif
