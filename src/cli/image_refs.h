/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/images: what names of images were resolved to (docs/images.md). One that is dropped is read or fetched anew the
 * next time it is asked for; its layers stay as long as something else names them. */
#ifndef CLI_IMAGE_REFS_H
#define CLI_IMAGE_REFS_H

#include <stdint.h>

#include "util/err.h"
#include "util/slice.h"

struct image_refs_limits {
	int64_t older_ms; /* drop what was not used for that long; 0: no such limit */
	int64_t max_bytes; /* keep those used last whose layers take no more in all; 0: no such limit */
};

/* Drops what is beyond the limits. Returns how many. Wants the store's lock held exclusively (layers.h). */
int image_refs_drop(const char *state_dir, const struct image_refs_limits *limits, struct err *err);

/* Tells each layer that the rest names. -EBADMSG where a file cannot be read: it may name any. */
int image_refs_each_layer(const char *state_dir, void (*tell)(void *ctx, struct slice name),
	void *ctx, struct err *err);

#endif
