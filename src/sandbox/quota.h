/* SPDX-License-Identifier: Apache-2.0 */
/* How much a sandbox may keep on disk: a project of the filesystem, which its layers and change sets belong to.
 *
 * Whatever is made below a folder of a project belongs to that project, and nobody inside can change that. The id is
 * taken where the filesystem has neither a limit nor a file of it, so that ids of change sets that are kept are left
 * alone; it is written down by a file of the sandbox's folder that is the project's first, by which gc finds it. The
 * limit is lifted with the sandbox's end.
 *
 * Kernel: quotactl(2), ext4 and xfs; ioctl_fsxattr. */
#ifndef SANDBOX_QUOTA_H
#define SANDBOX_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

#define QUOTA_FIRST_ID 1668022272u /* ids of projects that are ours: 65,536 from here on */
#define QUOTA_N_IDS    65536u

struct quota {
	int dir_fd;  /* on the filesystem; borrowed; -1: no limit */
	uint32_t id; /* of the project */
	dev_t dev;
	int64_t limit_bytes;
};

/* Sets the limit for what will lie in dir_fd (the sandbox's folder, which outlives *ret) and in other folders of the
 * same filesystem. -EOPNOTSUPP with what to do where that has no project quotas. state_dir: for sentences and the lock. */
int quota_open(struct quota *ret, int dir_fd, const char *state_dir, const char *id, int64_t bytes,
	struct err *err);
/* Makes a folder, and all that will be made in it, part of the project. Without a limit nothing. */
int quota_take_folder(const struct quota *quota, int at_fd, const char *path);
/* Lifts the limit. What is left belongs to the project still, so its id is not given out again. */
void quota_close(struct quota *quota);
/* The same, of a sandbox whose supervisor died. */
void quota_clean(int dir_fd);

/* What it holds, and whether that is all it may (but for 64 KiB). GAUGE_UNKNOWN and false without a limit. */
int64_t quota_held(const struct quota *quota, bool *ret_is_full);

/* Whether the filesystem of path can limit: -EOPNOTSUPP with what to do. */
int quota_probe(const char *path, struct err *err);

#endif
