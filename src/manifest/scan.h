/* SPDX-License-Identifier: Apache-2.0 */
/* Walks an upper beside the folder below it and lists the differences: the first half of changes_read().
 *
 * How it works. A folder of the upper is visited with the folder below that belongs to it, if any: the one at
 * the same path, or, where a redirect says so, the one it was renamed from. `merged` says whether that one
 * shows through; below an opaque folder it does not, and is then only compared with, so that a tree removed
 * and written again with the same bytes is no change. Whiteouts, and what an opaque or replaced folder hides,
 * are noted as hidden and listed at the end, less what was renamed away from there. A file is renamed where its
 * origin mark (the file it was copied up from) is one of the hidden files.
 *
 * A first round finds the renamed folders only, since a folder that was made under the name of one that was renamed
 * away is a new one and not to be compared with that.
 *
 * Both sides are walked by descriptors, one name at a time, following no link (lower.h for what is mounted there). The sandbox
 * may run meanwhile: each entry is as it was when looked at. */
#ifndef MANIFEST_SCAN_H
#define MANIFEST_SCAN_H

#include "manifest/changes.h"

/* Fills changes (root, n and cow are set). */
int scan_layer(const struct change_set *set, const struct changes_query *query,
	struct changes *changes, struct err *err);

#endif
