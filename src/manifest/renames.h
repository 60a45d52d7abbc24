/* SPDX-License-Identifier: Apache-2.0 */
/* The renames that applies did in one folder of the host, in their order, and where that took the paths of before.
 *
 * Each is written down before it is done, and a power cut may take back the last ones: whoever looks compares the inode
 * of what should have gone, from the last one back, and drops what was not done. */
#ifndef MANIFEST_RENAMES_H
#define MANIFEST_RENAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/scoped.h"

/* What stands in the way of another rename waits under such a name, at the top of the folder. */
#define RENAMES_PARK ".cloche-"

struct renames;

struct rename {
	char *from, *to;
	uint64_t inode; /* of what goes */
	bool is_parked; /* to is a parking place, and no name that the sandbox chose */
};

struct renames *renames_new(void);
void renames_free(struct renames *renames);
SCOPED_TYPE(renames)

void renames_add(struct renames *renames, const struct rename *rename); /* copies it */
const struct rename *renames_last(const struct renames *renames);       /* NULL: none */
void renames_drop_last(struct renames *renames);

/* Where a path of before is now, and what a path of now was before: at its place where none took it. The caller frees it. */
char *renames_now(struct renames *renames, const char *path);
char *renames_before(struct renames *renames, const char *path);
/* What is parked now: from *i = 0 on, until NULL. Its path of before is renames_before()'s. */
const char *renames_next_parked(struct renames *renames, size_t *i);

#endif
