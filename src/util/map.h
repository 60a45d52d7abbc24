/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from byte strings to pointers. Keys are copied; values stay the caller's. */
#ifndef UTIL_MAP_H
#define UTIL_MAP_H

#include "util/scoped.h"
#include "util/slice.h"

struct map;

struct map *map_new(void);
void map_free(struct map *map); /* leaves the values alone */
SCOPED_TYPE(map)

void *map_find(const struct map *map, struct slice key); /* NULL where there is none */
/* The place of the value for key, made (holding NULL) where there was none. Valid until the next call. */
void **map_slot(struct map *map, struct slice key);
void *map_remove(struct map *map, struct slice key); /* the value it had, or NULL */
size_t map_len(const struct map *map);

/* Walks in insertion order: for (i = 0; map_next(map, &i, &key, &value);). Removed ones are left out. */
bool map_next(const struct map *map, size_t *i, struct slice *ret_key, void **ret_value);

/* Integer keys: the eight bytes of v. The slice points at *v. */
static inline struct slice map_int_key(const unsigned long long *v)
{
	return (struct slice){.p = (const char *)v, .len = sizeof(*v)};
}

#endif
