/* SPDX-License-Identifier: Apache-2.0 */
/* A mount's source where it lies on a filesystem that takes no map of ids (a container's overlay, NFS, 9p; tmpfs before
 * Linux 6.3): a copy of it in the state folder stands for it, ro and cow. */
#ifndef SANDBOX_MOUNT_COPY_H
#define SANDBOX_MOUNT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

#define MOUNT_COPY_MAX_BYTES   (2ull << 30)
#define MOUNT_COPY_MAX_ENTRIES 200000

/* Whether ids on the mount of this path can be mapped, by trying it. */
bool mount_copy_is_needed(const char *path, int userns_fd);

struct mount_copy {
	char *path; /* of the copy; the caller's */
	size_t n_entries;
	uint64_t n_bytes;
};

/* Copies source into dir, which is made, under a name of that number. -E2BIG past the limits: a sentence says what to
 * do. What was copied by then is left for whoever removes dir. */
int mount_copy_make(const char *source, bool is_folder, const char *dir, size_t number,
	struct mount_copy *ret_copy, struct err *err);

#endif
