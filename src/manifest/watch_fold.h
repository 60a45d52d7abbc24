/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be told of a name: from what was told before, what is there now, and what happened meanwhile. Pure. */
#ifndef MANIFEST_WATCH_FOLD_H
#define MANIFEST_WATCH_FOLD_H

#include "manifest/watch.h"
#include "manifest/watch_tree.h"

#define WATCH_FOLD_MAX 3

struct watch_fold_line {
	enum watch_kind kind;
	bool replaced;
};

/* before: what was told at this name; came: what was told of the thing that was renamed to it, or NULL; why: WATCH_WHY_...
 * Something is there now. Returns how many lines that gives. */
size_t watch_fold(const struct watch_seen *before, const struct watch_seen *came,
	const struct watch_seen *now, unsigned why,
	struct watch_fold_line ret_lines[WATCH_FOLD_MAX]);

#endif
