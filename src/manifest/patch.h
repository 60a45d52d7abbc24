/* SPDX-License-Identifier: Apache-2.0 */
/* Changes as a patch: git's unified form (git-diff(1), "generating patch text with -p"), paths below the root, so that
 * `git apply` and `patch -p1` take it there. A file that is no text, or that could not be compared (too large, too
 * long), stands in it by size and hash. */
#ifndef MANIFEST_PATCH_H
#define MANIFEST_PATCH_H

#include "manifest/changes.h"
#include "util/slice.h"
#include "util/str.h"

#define PATCH_TEXT_MAX (8 << 20) /* bytes of one side that are compared */

struct patch_config {
	const struct changes *changes; /* of one root */
	/* Adds the hunks ("@@ ... @@" and lines) between two texts; 0, or a negative errno: -ENOENT where nothing can be
	 * compared at all. */
	int (*compare)(void *ctx, struct slice before, struct slice after, struct str *hunks);
	void *ctx;
};

struct patch;

/* Opens the upper and the folder below. The caller owns *ret_patch. */
int patch_open(const struct patch_config *config, struct patch **ret_patch, struct err *err);
void patch_free(struct patch *patch);
SCOPED_TYPE(patch)

/* Adds one change; nothing for what a patch cannot hold (folders, sockets, owners). What can no longer be read is said in a
 * comment line. 0, or -ENOENT of compare(). */
int patch_add(struct patch *patch, const struct change *change, struct str *out);

#endif
