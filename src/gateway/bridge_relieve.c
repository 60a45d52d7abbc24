/* SPDX-License-Identifier: Apache-2.0 */
/* Takes memory back from flows: from those first that hold most. */
#include <stdlib.h>

#include "gateway/bridge_internal.h"
#include "util/mem.h"

struct weighed {
	struct bridge *bridge;
	size_t bytes;
};

static size_t weigh(const struct bridge *bridge)
{
	size_t n = sizeof(*bridge);

	for (int i = 0; i < MACHINE_SIDES; i++)
		if (bridge->side[i].relay.rest)
			n += bridge->side[i].relay.at + bridge->side[i].relay.left;
	if (bridge->machine.ops)
		n += bridge->machine.ops->holds(bridge->machine.self);
	return n;
}

static int heaviest_first(const void *a, const void *b)
{
	size_t x = ((const struct weighed *)a)->bytes, y = ((const struct weighed *)b)->bytes;

	return (x < y) - (x > y);
}

void bridge_all_relieve(
	struct bridges *all, size_t bytes, const char *why, void (*on_broken)(void *ctx), void *ctx)
{
	struct weighed *list;
	size_t n = 0, freed = 0;

	for (struct bridge *bridge = all->first; bridge; bridge = bridge->next)
		n++;
	list = new0_n(struct weighed, n + 1);
	n = 0;
	for (struct bridge *bridge = all->first; bridge; bridge = bridge->next)
		list[n++] = (struct weighed){.bridge = bridge, .bytes = weigh(bridge)};
	qsort(list, n, sizeof(*list), heaviest_first);
	for (size_t i = 0; i < n && freed < bytes; i++) {
		freed += list[i].bytes;
		list[i].bridge->failed = true;
		bridge_reset(list[i].bridge, why);
		on_broken(ctx);
	}
	free(list);
}
