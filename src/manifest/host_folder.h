/* SPDX-License-Identifier: Apache-2.0 */
/* Writes into a folder of the host, as its owner, and only beneath it.
 *
 * Every name is looked up anew from the folder's descriptor, over no link and no mount (openat2). Files are made
 * beside their place and renamed into it, synced first: whoever looks sees the old one or the new one. While a
 * call works here the thread's file-system ids are the owner's and its capabilities over files are gone, so
 * that what the owner could not do is not done for him. For programs with one thread. */
#ifndef MANIFEST_HOST_FOLDER_H
#define MANIFEST_HOST_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/err.h"
#include "util/scoped.h"

struct host_folder;

int host_folder_open(
	const char *path, uid_t uid, gid_t gid, struct host_folder **ret_folder, struct err *err);
void host_folder_free(struct host_folder *folder);
SCOPED_TYPE(host_folder)

/* Called before a temporary file is made, with its path: first in each folder. What it returns but 0 ends the act. */
void host_folder_on_temporary(
	struct host_folder *folder, int (*on_temporary)(void *ctx, const char *path), void *ctx);

/* What was there when it was looked at: where it is not that any more, right before it would go, -EAGAIN. */
struct host_folder_seen {
	int64_t ctime_ns; /* 0: it may have another, since another of its names went or we renamed it */
	int64_t mtime_ns, size;
	uint64_t
		inode; /* 0: it may have another, since we renamed it (some filesystems have new ones then) */
};

struct host_folder_source {
	int data, attributes; /* open files */
	mode_t mode;
	const struct host_folder_seen *seen; /* NULL: whatever is there */
	char *ret_sha256; /* DIGEST_HEX_SIZE bytes for what was written, "" where that is too long to say; NULL: not asked */
};

int host_folder_stat(struct host_folder *folder, const char *path, struct stat *ret_st);
/* A file with the data of one open file and the user.* attributes of another (or the same). Bits beyond 01777 of mode are dropped. replace:
 * over the file or link that is there, whose owner, group and access list it keeps; else -EEXIST. */
int host_folder_put_file(struct host_folder *folder, const char *path,
	const struct host_folder_source *source, bool replace);
int host_folder_put_link(struct host_folder *folder, const char *path, const char *target,
	bool replace, const struct host_folder_seen *seen);
/* An empty folder, with all rights for its owner. One that is there is fine. replaced: in the place of this file, too. */
int host_folder_make(
	struct host_folder *folder, const char *path, const struct host_folder_seen *replaced);
/* Bits beyond 01777 are dropped; a folder keeps the set-group-id bit that the host gave it. */
int host_folder_set_mode(struct host_folder *folder, const char *path, mode_t mode);
int host_folder_remove(struct host_folder *folder, const char *path, bool is_folder,
	const struct host_folder_seen *seen);
/* A file or empty folder, if it is there. */
int host_folder_clean(struct host_folder *folder, const char *path);
int host_folder_rename(struct host_folder *folder, const char *from, const char *to);
/* Whether a folder with that inode number is one in which something was done, or whose mode was set. */
bool host_folder_has_worked_in(const struct host_folder *folder, uint64_t inode);
int host_folder_sync(struct host_folder *folder); /* all that was done is on the disk */

#endif
