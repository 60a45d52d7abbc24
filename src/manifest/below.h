/* SPDX-License-Identifier: Apache-2.0 */
/* How many of a set of paths lie below a folder: a map from the folder to their number. */
#ifndef MANIFEST_BELOW_H
#define MANIFEST_BELOW_H

#include "util/map.h"

void below_add(struct map *counts, const char *path); /* for each folder that it lies in */
void below_drop(struct map *counts, const char *path);
size_t below_count(const struct map *counts, const char *folder);

#endif
