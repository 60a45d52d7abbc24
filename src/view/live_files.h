/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files that a sandbox wrote are now. A rename moves a file, or a folder with all that lies in
 * it, in one step, so who wrote a file is known under its last name. Holds only what was written or made,
 * and the folders above it; a deleted file is forgotten. */
#ifndef VIEW_LIVE_FILES_H
#define VIEW_LIVE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"
#include "view/idset.h"

struct live_facts {
	bool written, created;
	int64_t bytes_written; /* as far as that is known */
	struct idset processes, execs;
};

struct live_files;

struct live_files *live_files_new(void);
void live_files_free(struct live_files *live);
SCOPED_TYPE(live_files)

/* Paths are absolute and clean. Facts are good until their file is deleted or replaced. */
struct live_facts *live_files_get(
	struct live_files *live, struct slice path); /* made where there is none */
struct live_facts *live_files_find(struct live_files *live, struct slice path); /* NULL */
void live_files_delete(struct live_files *live, struct slice path);
void live_files_move(
	struct live_files *live, struct slice from, struct slice to); /* what was at to is gone */
void live_files_swap(struct live_files *live, struct slice a, struct slice b);

/* Walks those with facts: void *at = NULL; while (live_files_next(live, &at, &path, &facts)). */
bool live_files_next(const struct live_files *live, void **at, struct str *path,
	const struct live_facts **ret_facts);

#endif
