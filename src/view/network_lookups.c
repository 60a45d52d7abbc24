/* SPDX-License-Identifier: Apache-2.0 */
#include "view/network_lookups.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "view/intern.h"

struct network_lookups {
	struct intern *intern;
	struct map *by_name; /* to its index + 1 */
	struct network_lookup *names;
	size_t n, cap;
	int64_t more; /* questions for names that found no place */
};

struct network_lookups *network_lookups_new(void)
{
	struct network_lookups *lookups = new0(struct network_lookups);

	lookups->intern = intern_new();
	lookups->by_name = map_new();
	return lookups;
}

void network_lookups_free(struct network_lookups *lookups)
{
	if (!lookups)
		return;
	intern_free(lookups->intern);
	map_free(lookups->by_name);
	free(lookups->names);
	free(lookups);
}

static struct network_lookup *find(const struct network_lookups *lookups, struct slice name)
{
	size_t at = (size_t)(uintptr_t)map_find(lookups->by_name, name);

	return at ? &lookups->names[at - 1] : NULL;
}

static void add_name(struct network_lookups *lookups, const struct event *ev)
{
	if (lookups->n == NETWORK_LOOKUPS_MAX) {
		lookups->more++;
		return;
	}
	if (lookups->n == lookups->cap) {
		lookups->cap = lookups->cap ? lookups->cap * 2 : 16;
		lookups->names =
			mem_grow(lookups->names, lookups->cap, sizeof(struct network_lookup));
	}
	lookups->names[lookups->n++] =
		(struct network_lookup){.name = intern_text(lookups->intern, ev->name),
			.error = intern_text(lookups->intern, ev->error)};
	*map_slot(lookups->by_name, ev->name) = (void *)(uintptr_t)lookups->n;
}

void network_lookups_add(struct network_lookups *lookups, const struct event *ev)
{
	struct network_lookup *lookup = find(lookups, ev->name);

	if (ev->name.len == 0)
		return;
	if (!lookup)
		add_name(lookups, ev);
	else if (ev->error.len == 0)
		lookup->error = (struct slice){0};
}

void network_lookups_reached(struct network_lookups *lookups, struct slice name)
{
	struct network_lookup *lookup = find(lookups, name);

	if (lookup)
		lookup->is_reached = true;
}

size_t network_lookups_n(const struct network_lookups *lookups)
{
	return lookups->n;
}

const struct network_lookup *network_lookups_get(const struct network_lookups *lookups, size_t i)
{
	return &lookups->names[i];
}

int64_t network_lookups_only(const struct network_lookups *lookups)
{
	int64_t n = lookups->more;

	for (size_t i = 0; i < lookups->n; i++)
		n += !lookups->names[i].is_reached;
	return n;
}

int64_t network_lookups_unanswered(const struct network_lookups *lookups, struct slice *ret_error)
{
	int64_t n = 0;

	*ret_error = (struct slice){0};
	for (size_t i = 0; i < lookups->n; i++) {
		const struct network_lookup *lookup = &lookups->names[i];

		if (lookup->is_reached || lookup->error.len == 0 ||
			slice_is(lookup->error, "NXDOMAIN"))
			continue;
		*ret_error = lookup->error;
		n++;
	}
	return n;
}
