/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/renames.h"

#include <stdlib.h>
#include <string.h>

#include "manifest/moves.h"
#include "util/mem.h"

struct renames {
	struct rename *items;
	size_t n, n_room;
	struct moves *moves; /* made when it is asked for */
};

struct renames *renames_new(void)
{
	return new0(struct renames);
}

void renames_free(struct renames *renames)
{
	while (renames && renames->n > 0)
		renames_drop_last(renames);
	if (renames) {
		free(renames->items);
		moves_free(renames->moves);
	}
	free(renames);
}

void renames_add(struct renames *renames, const struct rename *rename)
{
	struct rename *added;

	if (renames->n == renames->n_room) {
		renames->n_room = renames->n_room ? 2 * renames->n_room : 8;
		renames->items = mem_grow(renames->items, renames->n_room, sizeof(*renames->items));
	}
	added = &renames->items[renames->n++];
	*added = *rename;
	added->from = mem_dup(rename->from);
	added->to = mem_dup(rename->to);
	if (renames->moves)
		moves_add(renames->moves, rename->from, rename->to);
}

const struct rename *renames_last(const struct renames *renames)
{
	return renames->n > 0 ? &renames->items[renames->n - 1] : NULL;
}

void renames_drop_last(struct renames *renames)
{
	struct rename *last;

	if (renames->n == 0)
		return;
	last = &renames->items[--renames->n];
	free(last->from);
	free(last->to);
	moves_free(take(&renames->moves));
}

static const struct moves *look_up(struct renames *renames)
{
	if (renames->moves)
		return renames->moves;
	renames->moves = moves_new();
	for (size_t i = 0; i < renames->n; i++)
		moves_add(renames->moves, renames->items[i].from, renames->items[i].to);
	return renames->moves;
}

char *renames_now(struct renames *renames, const char *path)
{
	char *now = moves_find(look_up(renames), path);

	return now ? now : mem_dup(path);
}

char *renames_before(struct renames *renames, const char *path)
{
	return moves_find_old(look_up(renames), slice_of(path));
}

static bool is_parked_again(const struct renames *renames, size_t i)
{
	for (size_t k = i + 1; k < renames->n; k++)
		if (strcmp(renames->items[k].to, renames->items[i].to) == 0)
			return true;
	return false;
}

const char *renames_next_parked(struct renames *renames, size_t *i)
{
	while (*i < renames->n) {
		size_t at = (*i)++;
		const char *to = renames->items[at].to;
		scoped_mem char *before = NULL, *now = NULL;

		if (!renames->items[at].is_parked || is_parked_again(renames, at))
			continue;
		before = renames_before(renames, to);
		now = renames_now(renames, before);
		if (strcmp(before, to) != 0 && strcmp(now, to) == 0)
			return to;
	}
	return NULL;
}
