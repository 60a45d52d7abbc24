/* SPDX-License-Identifier: Apache-2.0 */
/* An image as it is known once its documents were read: plain data. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "image/document.h"
#include "spec/spec.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/slice.h"

struct image_layer {
	char *blob;    /* its digest, or its path in an archive of docker */
	uint64_t size; /* of that, where there is a digest */
	char diff[DIGEST_HEX_SIZE];
};

struct image {
	char *digest; /* "sha256:...": of its manifest; of what stands in its place where it has none */
	char *config; /* digest or path of its config */
	uint64_t config_size;
	struct image_layer *layers; /* from the bottom up */
	size_t n_layers;
	struct spec_words env, entrypoint, cmd, labels; /* labels: KEY=VALUE */
	char *workdir, *user;
};

void image_done(struct image *image);

/* From the parcels of a manifest (DOCUMENT_MANIFEST, DOCUMENT_DOCKER): config and layers. */
int image_take_manifest(struct image *image, struct slice parcels, struct err *err);
/* From those of a config: one diff for each layer, and the rest. */
int image_take_config(struct image *image, struct slice parcels, struct err *err);

#endif
