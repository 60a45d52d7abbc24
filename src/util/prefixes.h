/* SPDX-License-Identifier: Apache-2.0 */
/* A set of paths that is asked for each folder above another path at once.
 *
 * Looking up each of a path's beginnings by itself costs the square of its length, and whoever is recorded chooses paths
 * and how deep they are. Here one pass over the path gives a number for each beginning. Numbers of different paths may be
 * the same, so what is found is a candidate, to be looked up by name; nobody outside can make them so. */
#ifndef UTIL_PREFIXES_H
#define UTIL_PREFIXES_H

#include <stdbool.h>
#include <stddef.h>

#include "util/scoped.h"
#include "util/slice.h"

struct prefixes;

struct prefixes *prefixes_new(void);
void prefixes_free(struct prefixes *prefixes);
SCOPED_TYPE(prefixes)

/* Absolute and clean paths. One that was added n times is there until it was removed as often. */
void prefixes_add(struct prefixes *prefixes, struct slice path);
void prefixes_remove(struct prefixes *prefixes, struct slice path);
bool prefixes_may_have(const struct prefixes *prefixes, struct slice path);
/* The same of all folders above a path and of itself. */
void prefixes_add_all(struct prefixes *prefixes, struct slice path);
void prefixes_remove_all(struct prefixes *prefixes, struct slice path);

/* Those that may be in the set, from the top down, path itself being the last: struct prefixes_walk walk = {.path = path};
 * while (prefixes_next(prefixes, &walk, &one)) ... Any number of threads may walk at once. */
struct prefixes_walk {
	struct slice path;
	size_t at;
	unsigned long long number;
};
bool prefixes_next(
	const struct prefixes *prefixes, struct prefixes_walk *walk, struct slice *ret_prefix);

#endif
