/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/lowers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/idmap.h"
#include "sandbox/idrange.h"
#include "util/mem.h"
#include "util/scoped.h"

static const struct lowers_map *find_map(const struct lowers *lowers, uint32_t base)
{
	for (size_t i = 0; i < lowers->n_maps; i++)
		if (lowers->maps[i].base == base)
			return &lowers->maps[i];
	return NULL;
}

/* Files that have the sandbox's own ids already need no map; those of a plain folder, the map of what lies below. */
static int open_map(uint32_t from, uint32_t base, struct err *err)
{
	const struct idmap map = {
		.lines = {{.disk = from, .host = base, .n = IDRANGE_LEN}}, .n = 1};

	if (from == 0)
		return LAYER_OWN_MAP;
	return from == base ? -1 : idmap_open_userns(&map, &map, err);
}

int lowers_plan(struct lowers *lowers, const struct spec *spec, uint32_t base, struct err *err)
{
	*lowers = (struct lowers){.spec = spec};
	for (size_t i = 0; i < spec->n_lowers; i++) {
		uint32_t from = spec->lowers[i].base;
		int fd;

		if (find_map(lowers, from))
			continue;
		fd = open_map(from, base, err);
		if (fd < 0 && from != 0 && from != base)
			return fd;
		lowers->maps = mem_grow(lowers->maps, lowers->n_maps + 1, sizeof(*lowers->maps));
		lowers->maps[lowers->n_maps++] = (struct lowers_map){.base = from, .userns_fd = fd};
	}
	return 0;
}

void lowers_done(struct lowers *lowers)
{
	for (size_t i = 0; i < lowers->n_maps; i++)
		scoped_close(&lowers->maps[i].userns_fd);
	free(lowers->maps);
	*lowers = (struct lowers){0};
}

bool lowers_has(const struct lowers *lowers, const char *guest)
{
	for (size_t i = 0; lowers->spec && i < lowers->spec->n_lowers; i++)
		if (strcmp(lowers->spec->lowers[i].guest, guest) == 0)
			return true;
	return false;
}

int lowers_put(const struct lowers *lowers, const char *guest, struct layer *layer,
	struct layer_lower *buf, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; lowers->spec && i < lowers->spec->n_lowers; i++) {
		const struct spec_lower *l = &lowers->spec->lowers[i];

		if (strcmp(l->guest, guest) != 0)
			continue;
		if (n == LAYER_MAX_LOWERS)
			return err_set(err, -E2BIG,
				"more than %d layers lie at '%s': that many cannot be joined",
				LAYER_MAX_LOWERS, guest);
		buf[n++] = (struct layer_lower){.dir = l->dir,
			.base = l->base,
			.userns_fd = find_map(lowers, l->base)->userns_fd};
	}
	layer->lowers = buf;
	layer->n_lowers = n;
	return 0;
}

void lowers_write(const struct lowers *lowers, const char *guest, struct jsonw *j)
{
	if (!lowers_has(lowers, guest))
		return;
	jsonw_key(j, "lowers");
	jsonw_array(j);
	for (size_t i = 0; i < lowers->spec->n_lowers; i++) {
		const struct spec_lower *l = &lowers->spec->lowers[i];

		if (strcmp(l->guest, guest) != 0)
			continue;
		jsonw_object(j);
		jsonw_ktext(j, "dir", l->dir);
		jsonw_kint(j, "base", l->base);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
}
