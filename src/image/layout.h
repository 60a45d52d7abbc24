/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that holds one or more images: an OCI layout, what `docker save` packs, or what skopeo fetched. Nothing in it
 * is trusted: files are opened beneath it, and read only where their digest is the one that was asked for. */
#ifndef IMAGE_LAYOUT_H
#define IMAGE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image.h"
#include "util/err.h"
#include "util/str.h"

enum layout_kind {
	LAYOUT_NONE,   /* it is something else: a root filesystem */
	LAYOUT_OCI,    /* oci-layout, index.json, blobs/sha256/HEX */
	LAYOUT_DOCKER, /* manifest.json, which names files */
	LAYOUT_SKOPEO, /* its transport dir: version, manifest.json, HEX */
};

struct layout {
	int dir_fd; /* borrowed */
	enum layout_kind kind;
	uint32_t jail_base; /* ids for the children that read documents */
	const char *top;    /* digest that its top document must have; NULL: any */
};

/* What lies there. */
enum layout_kind layout_look(int dir_fd);
/* The document that everything else follows from: index.json or manifest.json. Its digest says which images these are. */
int layout_read_top(const struct layout *layout, struct str *out, struct err *err);
/* Finds the image of that tag (NULL: the only one) and reads its documents. */
int layout_read_image(
	const struct layout *layout, const char *tag, struct image *ret_image, struct err *err);
/* Layer number i of it, its digest checked, at its beginning. */
int layout_open_layer(
	const struct layout *layout, const struct image *image, size_t i, struct err *err);

#endif
