/* SPDX-License-Identifier: Apache-2.0 */
/* Entries lie in one array in insertion order; a second array of indexes, probed linearly, finds them.
 * A removed entry keeps its place with no key and goes when the table grows next. */
#include "util/map.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#include "util/mem.h"

struct entry {
	char *key; /* NULL: removed */
	size_t len;
	uint64_t hash;
	void *value;
};

struct map {
	struct entry *entries;
	uint32_t *buckets; /* index + 1 into entries, 0 for free */
	size_t n_entries, cap_entries, n_buckets, n_live;
	uint64_t seed; /* keys come from inside the box: it must not be able to aim at one bucket */
};

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

static uint64_t hash_of(const struct map *map, struct slice key)
{
	uint64_t h = map->seed ^ key.len, word;
	size_t i = 0;

	for (; i + sizeof(word) <= key.len; i += sizeof(word)) {
		memcpy(&word, key.p + i, sizeof(word));
		h = mix(h, word);
	}
	word = 0;
	if (i < key.len)
		memcpy(&word, key.p + i, key.len - i);
	h = mix(h, word);
	return h ^ h >> 32;
}

struct map *map_new(void)
{
	struct map *map = new0(struct map);

	if (getrandom(&map->seed, sizeof(map->seed), 0) != (ssize_t)sizeof(map->seed))
		abort();
	return map;
}

void map_free(struct map *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->n_entries; i++)
		free(map->entries[i].key);
	free(map->entries);
	free(map->buckets);
	free(map);
}

/* The bucket that holds key, or the free one where it belongs. */
static size_t probe(const struct map *map, struct slice key, uint64_t hash)
{
	size_t at = hash & (map->n_buckets - 1);

	for (; map->buckets[at]; at = (at + 1) & (map->n_buckets - 1)) {
		const struct entry *e = &map->entries[map->buckets[at] - 1];

		if (e->key && e->hash == hash &&
			slice_eq((struct slice){.p = e->key, .len = e->len}, key))
			break;
	}
	return at;
}

static void compact(struct map *map)
{
	size_t n = 0;

	for (size_t i = 0; i < map->n_entries; i++)
		if (map->entries[i].key)
			map->entries[n++] = map->entries[i];
	map->n_entries = n;
}

static void grow(struct map *map)
{
	compact(map);
	if (map->n_entries == map->cap_entries || map->cap_entries == 0) {
		map->cap_entries = map->cap_entries ? map->cap_entries * 2 : 16;
		map->entries = mem_grow(map->entries, map->cap_entries, sizeof(*map->entries));
	}
	free(map->buckets);
	map->n_buckets = map->cap_entries * 2;
	map->buckets = mem_zero(map->n_buckets, sizeof(*map->buckets));
	for (size_t i = 0; i < map->n_entries; i++) {
		size_t at = map->entries[i].hash & (map->n_buckets - 1);

		while (map->buckets[at])
			at = (at + 1) & (map->n_buckets - 1);
		map->buckets[at] = (uint32_t)(i + 1);
	}
}

void *map_find(const struct map *map, struct slice key)
{
	size_t at;

	if (map->n_live == 0)
		return NULL;
	at = probe(map, key, hash_of(map, key));
	return map->buckets[at] ? map->entries[map->buckets[at] - 1].value : NULL;
}

void **map_slot(struct map *map, struct slice key)
{
	uint64_t hash = hash_of(map, key);
	struct entry *e;
	size_t at;

	if (map->n_entries == map->cap_entries)
		grow(map);
	at = probe(map, key, hash);
	if (map->buckets[at])
		return &map->entries[map->buckets[at] - 1].value;
	e = &map->entries[map->n_entries++];
	*e = (struct entry){.key = mem_copy(key.p, key.len), .len = key.len, .hash = hash};
	map->buckets[at] = (uint32_t)map->n_entries;
	map->n_live++;
	return &e->value;
}

void *map_remove(struct map *map, struct slice key)
{
	struct entry *e;
	size_t at;

	if (map->n_live == 0)
		return NULL;
	at = probe(map, key, hash_of(map, key));
	if (!map->buckets[at])
		return NULL;
	e = &map->entries[map->buckets[at] - 1];
	free(e->key);
	e->key = NULL; /* its bucket stays taken, so that probing goes on past it */
	map->n_live--;
	return e->value;
}

size_t map_len(const struct map *map)
{
	return map->n_live;
}

bool map_next(const struct map *map, size_t *i, struct slice *ret_key, void **ret_value)
{
	for (; *i < map->n_entries; ++*i) {
		const struct entry *e = &map->entries[*i];

		if (!e->key)
			continue;
		*ret_key = (struct slice){.p = e->key, .len = e->len};
		*ret_value = e->value;
		++*i;
		return true;
	}
	return false;
}
