/* SPDX-License-Identifier: Apache-2.0 */
#include "util/prefixes.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#include "util/map.h"
#include "util/mem.h"

struct prefixes {
	struct map *counts; /* number of a path to how often it was added */
	unsigned long long seed, factor;
};

struct prefixes *prefixes_new(void)
{
	struct prefixes *prefixes = new0(struct prefixes);
	unsigned long long random[2] = {0};

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort();
	prefixes->seed = random[0];
	prefixes->factor = random[1] | 1;
	prefixes->counts = map_new();
	return prefixes;
}

void prefixes_free(struct prefixes *prefixes)
{
	if (!prefixes)
		return;
	map_free(prefixes->counts);
	free(prefixes);
}

/* On to the end of the next name; the first is "/". */
static bool step(const struct prefixes *prefixes, struct prefixes_walk *walk)
{
	unsigned long long number = walk->at > 0 ? walk->number : prefixes->seed;
	size_t at = walk->at;

	if (at >= walk->path.len)
		return false;
	do {
		number = (number ^ (unsigned char)walk->path.p[at++]) * prefixes->factor;
		number ^= number >> 29;
	} while (at > 1 && at < walk->path.len && walk->path.p[at] != '/');
	walk->at = at;
	walk->number = number;
	return true;
}

static bool has(const struct prefixes *prefixes, const struct prefixes_walk *walk)
{
	return map_find(prefixes->counts, map_int_key(&walk->number)) != NULL;
}

static void count(struct prefixes *prefixes, const struct prefixes_walk *walk, int more)
{
	void **slot = map_slot(prefixes->counts, map_int_key(&walk->number));

	*slot = (void *)((uintptr_t)*slot + (uintptr_t)more);
	if (!*slot)
		(void)map_remove(prefixes->counts, map_int_key(&walk->number));
}

static void count_path(struct prefixes *prefixes, struct slice path, int more, bool all)
{
	struct prefixes_walk walk = {.path = path};

	while (step(prefixes, &walk))
		if (all || walk.at == path.len)
			count(prefixes, &walk, more);
}

void prefixes_add(struct prefixes *prefixes, struct slice path)
{
	count_path(prefixes, path, 1, false);
}

void prefixes_remove(struct prefixes *prefixes, struct slice path)
{
	count_path(prefixes, path, -1, false);
}

void prefixes_add_all(struct prefixes *prefixes, struct slice path)
{
	count_path(prefixes, path, 1, true);
}

void prefixes_remove_all(struct prefixes *prefixes, struct slice path)
{
	count_path(prefixes, path, -1, true);
}

bool prefixes_may_have(const struct prefixes *prefixes, struct slice path)
{
	struct prefixes_walk walk = {.path = path};

	while (step(prefixes, &walk))
		;
	return path.len > 0 && has(prefixes, &walk);
}

bool prefixes_next(
	const struct prefixes *prefixes, struct prefixes_walk *walk, struct slice *ret_prefix)
{
	while (step(prefixes, walk)) {
		if (!has(prefixes, walk))
			continue;
		*ret_prefix = (struct slice){.p = walk->path.p, .len = walk->at};
		return true;
	}
	return false;
}
