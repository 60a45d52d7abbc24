/* SPDX-License-Identifier: Apache-2.0 */
/* Throws away what a sandbox changed: it is not pending any more, and where nothing needs it, its data goes. */
#ifndef MANIFEST_DISCARD_H
#define MANIFEST_DISCARD_H

#include "manifest/apply.h"
#include "manifest/change_set.h"
#include "manifest/changes.h"

/* Whether it lies at or below one of the paths, of which none are all. */
bool discard_means(const struct change *c, const struct apply_options *options);

/* How many changes a discard of all of them counts: of skipped folders too, but no folder that goes without saying. */
size_t discard_count(const struct changes *changes);

/* What is meant is settled (options as for apply; force says nothing). The data of a sandbox that still runs stays until
 * that is removed. *ret_n: how many changes that were, counted likewise. */
int discard_changes(struct change_set *set, const struct changes *changes,
	const struct apply_options *options, size_t *ret_n, struct err *err);

/* Removes a whole change set from the disk, in one step, by way of the folder trash (util/aside.h). Not one of a
 * sandbox that still runs. */
int discard_set(struct change_set *set, const char *trash, struct err *err);

/* Removes one in which nothing was changed. 1: removed; 0: something is there. */
int discard_empty_set(struct change_set *set, const char *trash, struct err *err);

#endif
