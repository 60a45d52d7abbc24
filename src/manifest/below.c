/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/below.h"

#include <stdint.h>
#include <string.h>

static void change(struct map *counts, const char *path, bool more)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct slice folder = {.p = path, .len = (size_t)(slash - path)};
		void **slot = map_slot(counts, folder);
		uintptr_t n = (uintptr_t)*slot;

		*slot = (void *)(more ? n + 1 : n - 1);
	}
}

void below_add(struct map *counts, const char *path)
{
	change(counts, path, true);
}

void below_drop(struct map *counts, const char *path)
{
	change(counts, path, false);
}

size_t below_count(const struct map *counts, const char *folder)
{
	return (uintptr_t)map_find(counts, slice_of(folder));
}
