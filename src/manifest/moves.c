/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/moves.h"

#include <stdlib.h>
#include <string.h>

#include "manifest/below.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

struct move {
	char *old, *now;
};

struct moves {
	struct map *by_old, *by_now; /* to the same moves */
	struct map *below;           /* of by_now's paths */
};

struct moves *moves_new(void)
{
	struct moves *moves = new0(struct moves);

	moves->by_old = map_new();
	moves->by_now = map_new();
	moves->below = map_new();
	return moves;
}

void moves_free(struct moves *moves)
{
	struct slice key;
	void *value;

	if (!moves)
		return;
	for (size_t i = 0; map_next(moves->by_old, &i, &key, &value);) {
		struct move *m = value;

		free(m->old);
		free(m->now);
		free(m);
	}
	map_free(moves->by_old);
	map_free(moves->by_now);
	map_free(moves->below);
	free(moves);
}

/* The move of path, or of the nearest folder that it lies in: *ret_len bytes of path are that one's name. */
static struct move *find_nearest(const struct map *map, const char *path, size_t *ret_len)
{
	for (size_t len = strlen(path); len > 0; len--) {
		struct move *m;

		if (path[len] != '\0' && path[len] != '/')
			continue;
		m = map_find(map, (struct slice){.p = path, .len = len});
		*ret_len = len;
		if (m)
			return m;
	}
	return NULL;
}

char *moves_find(const struct moves *moves, const char *path)
{
	size_t len;
	const struct move *m = find_nearest(moves->by_old, path, &len);

	return m ? mem_printf("%s%s", m->now, path + len) : NULL;
}

char *moves_find_old(const struct moves *moves, struct slice path)
{
	char *now = mem_copy(path.p, path.len);
	size_t len;
	const struct move *m = find_nearest(moves->by_now, now, &len);
	char *old;

	if (!m)
		return now;
	old = mem_printf("%s%s", m->old, now + len);
	free(now);
	return old;
}

static void place(struct moves *moves, struct move *m, char *now)
{
	if (m->now) {
		if (map_find(moves->by_now, slice_of(m->now)) == m)
			(void)map_remove(moves->by_now, slice_of(m->now));
		below_drop(moves->below, m->now);
		free(m->now);
	}
	m->now = now;
	*map_slot(moves->by_now, slice_of(now)) = m;
	below_add(moves->below, now);
}

/* What was renamed in the folder before goes along with it. */
static void take_along(struct moves *moves, const char *from, const char *to)
{
	size_t len = strlen(from);
	struct slice key;
	void *value;

	if (below_count(moves->below, from) == 0)
		return;
	for (size_t i = 0; map_next(moves->by_old, &i, &key, &value);) {
		struct move *m = value;

		if (strncmp(m->now, from, len) == 0 && m->now[len] == '/')
			place(moves, m, mem_printf("%s%s", to, m->now + len));
	}
}

void moves_add(struct moves *moves, const char *from, const char *to)
{
	size_t len;
	struct move *m = find_nearest(moves->by_now, from, &len);
	scoped_mem char *old = m ? mem_printf("%s%s", m->old, from + len) : mem_dup(from);
	scoped_mem char *now = moves_find(moves, old);

	if (strcmp(now ? now : old, from) != 0)
		return;
	take_along(moves, from, to);
	m = map_find(moves->by_old, slice_of(old));
	if (!m) {
		m = new0(struct move);
		m->old = mem_dup(old);
		*map_slot(moves->by_old, slice_of(old)) = m;
	}
	place(moves, m, mem_dup(to));
}
