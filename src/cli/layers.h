/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/layers: shared layers, each in a folder of its own: fs/ is its tree, layer.json says what it is. They are never
 * changed. Who uses one names it in a file: <state>/sandboxes/<id>/layers (launcher/launch.h) and rest.json for what
 * lives or rests, <state>/changes/<id>/changes.json for change sets that lie over it, <state>/images/ for images. */
#ifndef CLI_LAYERS_H
#define CLI_LAYERS_H

#include <stdbool.h>

#include "cli/image_refs.h"
#include "util/err.h"

/* Held shared from before a layer is chosen until a file names it, and exclusively while unnamed ones are removed. The
 * descriptor; closing it lets go. Makes the store where there is none. */
int layers_lock(const char *state_dir, bool is_exclusive, struct err *err);

struct layers_collected {
	int images, layers;
};

/* Drops images beyond the limits, then removes layers that nothing names. */
int layers_collect(const char *state_dir, const struct image_refs_limits *limits,
	struct layers_collected *ret, struct err *err);

#endif
