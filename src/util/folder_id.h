/* SPDX-License-Identifier: Apache-2.0 */
/* Which folder stands at a path: what tells one from another that takes its place. */
#ifndef UTIL_FOLDER_ID_H
#define UTIL_FOLDER_ID_H

#include <stdbool.h>

#include "util/digest.h"

#define FOLDER_ID_SIZE DIGEST_HEX_SIZE

/* A digest of the filesystem's own id and its handle of the folder: the same after a remount or a restart (on XFS, whose
 * id is the device's number, where that is), another for a copy. "" where the filesystem has no handles (overlayfs, some FUSE ones): then nobody can tell. */
void folder_id_of(int fd, char ret[FOLDER_ID_SIZE]);
/* The same of what a path leads to; "" also where no folder is there. */
void folder_id_at(const char *path, char ret[FOLDER_ID_SIZE]);
/* Whether both are known, and differ. NULL is not known. */
bool folder_id_differs(const char *one, const char *other);

#endif
