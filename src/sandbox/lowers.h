/* SPDX-License-Identifier: Apache-2.0 */
/* The shared layers of one sandbox (an image's, those of the sandbox it was forked from), by the place inside that
 * they lie at, with the maps that give their files to this sandbox's ids. */
#ifndef SANDBOX_LOWERS_H
#define SANDBOX_LOWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/layer.h"
#include "spec/spec.h"
#include "util/err.h"
#include "util/jsonw.h"

struct lowers_map {
	uint32_t base; /* first host id in the layers */
	int userns_fd;
};

struct lowers {
	const struct spec *spec; /* borrowed */
	struct lowers_map *maps; /* one for each base there is */
	size_t n_maps;
};

/* base is the first of the sandbox's own host ids. Opens a user namespace for each map. */
int lowers_plan(struct lowers *lowers, const struct spec *spec, uint32_t base, struct err *err);
void lowers_done(struct lowers *lowers);

bool lowers_has(const struct lowers *lowers, const char *guest);
/* Puts those at guest into layer, topmost first; buf holds LAYER_MAX_LOWERS. More are refused. */
int lowers_put(const struct lowers *lowers, const char *guest, struct layer *layer,
	struct layer_lower *buf, struct err *err);
/* Those at guest as a member "lowers" of changes.json; nothing where there are none. */
void lowers_write(const struct lowers *lowers, const char *guest, struct jsonw *j);

#endif
