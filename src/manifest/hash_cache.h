/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of folders that were mounted rw before: <state>/hashes/, one for each, from which the next sandbox takes the
 * hashes of files whose stamps are the same. Whole files that are replaced, so that several sandboxes need no lock. */
#ifndef MANIFEST_HASH_CACHE_H
#define MANIFEST_HASH_CACHE_H

#include "manifest/snapshot.h"

/* -ENOENT where there is none of that folder (by its device and inode). */
int hash_cache_open(const char *state_dir, int root_fd, struct snapshot **ret_snapshot);
/* Moves a snapshot of it (name in dirfd) there. The oldest ones go, where there are too many. */
int hash_cache_keep(const char *state_dir, int root_fd, int dirfd, const char *name);

#endif
