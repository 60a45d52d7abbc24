/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/changes_names.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "util/prefixes.h"

#define PATH_LEN_MAX 4096 /* folders moved into each other make ever longer names */

/* Renames to one path, in order. */
struct arrivals {
	struct arrival {
		uint64_t at;
		char *from;
		size_t from_len;
	} * items;
	size_t n, room;
};

struct changes_names {
	struct map *to;          /* path to struct arrivals */
	struct prefixes *places; /* these paths */
};

struct changes_names *changes_names_new(void)
{
	struct changes_names *names = new0(struct changes_names);

	names->to = map_new();
	names->places = prefixes_new();
	return names;
}

static void arrivals_free(struct arrivals *arrivals)
{
	for (size_t i = 0; i < arrivals->n; i++)
		free(arrivals->items[i].from);
	free(arrivals->items);
	free(arrivals);
}

void changes_names_free(struct changes_names *names)
{
	struct slice key;
	void *value;

	if (!names)
		return;
	for (size_t i = 0; map_next(names->to, &i, &key, &value);)
		arrivals_free(value);
	map_free(names->to);
	prefixes_free(names->places);
	free(names);
}

void changes_names_add(struct changes_names *names, struct slice from, struct slice to, uint64_t at)
{
	void **slot = map_slot(names->to, to);
	struct arrivals *a;

	if (!*slot) {
		*slot = new0(struct arrivals);
		prefixes_add(names->places, to);
	}
	a = *slot;
	if (a->n == a->room) {
		a->room = a->room ? a->room * 2 : 1;
		a->items = mem_grow(a->items, a->room, sizeof(*a->items));
	}
	a->items[a->n++] = (struct arrival){
		.at = at, .from = mem_copy(from.p, from.len), .from_len = from.len};
}

/* The last one ahead of until. */
static const struct arrival *find_last(const struct arrivals *a, uint64_t until)
{
	size_t low = 0, high = a ? a->n : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->items[mid].at < until)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 ? &a->items[low - 1] : NULL;
}

bool changes_names_back(
	const struct changes_names *names, uint64_t since, struct str *path, uint64_t *until)
{
	const struct arrival *last = NULL;
	struct prefixes_walk walk = {.path = str_slice(path)};
	scoped_str struct str before = {0};
	struct slice at;
	size_t last_len = 0;

	while (prefixes_next(names->places, &walk, &at)) { /* the folders above, and itself */
		const struct arrival *one = find_last(map_find(names->to, at), *until);

		if (one && (!last || one->at > last->at)) {
			last = one;
			last_len = at.len;
		}
	}
	if (!last || last->at <= since || last->from_len + path->len - last_len > PATH_LEN_MAX)
		return false;
	str_add(&before, last->from, last->from_len);
	str_add(&before, path->p + last_len, path->len - last_len);
	*until = last->at;
	str_done(path);
	*path = before;
	before = (struct str){0};
	return true;
}
