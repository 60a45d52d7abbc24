/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two manifests of one folder: by content, never by time. */
#ifndef MANIFEST_COMPARE_H
#define MANIFEST_COMPARE_H

#include "manifest/manifest_lines.h"

/* One object as `cloche changes --json` has for a root, without who wrote what (docs/change-sets.md); and how many
 * differences there are. Against a list of sums, only the content of regular files is compared. */
size_t compare_write(
	struct str *out, const char *root, const struct manifest *before, const struct tree *after);

#endif
