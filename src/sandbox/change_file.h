/* SPDX-License-Identifier: Apache-2.0 */
/* Says on disk which host folders lie below which uppers of a sandbox, for `cloche changes` later. */
#ifndef SANDBOX_CHANGE_FILE_H
#define SANDBOX_CHANGE_FILE_H

#include <stdint.h>

#include "sandbox/mounts.h"
#include "sandbox/rootfs.h"
#include "util/err.h"

struct change_file {
	const char *id, *dir; /* of the sandbox: root layers lie in dir */
	uint32_t base;
	int64_t created_ns; /* wall clock, taken before anything was mounted */
	const struct mounts *mounts;
	const struct rootfs *rootfs;
	const struct lowers *lowers;
};

/* Writes <changes_dir>/changes.json at once, whole or not at all. It is on its way to the disk, not waited
 * for: a power cut within seconds may lose it, together with what little was changed by then. */
int change_file_write(const struct change_file *file, const char *changes_dir, struct err *err);

#endif
