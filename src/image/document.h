/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the JSON documents of an image (OCI image-spec 1.1, docker's image-spec v1.2) into parcels. Run in a child
 * without rights (jail.h): the documents are foreign. Pure. */
#ifndef IMAGE_DOCUMENT_H
#define IMAGE_DOCUMENT_H

#include "util/err.h"
#include "util/slice.h"
#include "util/str.h"

#define DOCUMENT_MAX        (4u << 20) /* bytes of one document */
#define DOCUMENT_LAYERS_MAX 128        /* of one image: so many an overlay takes */
#define DOCUMENT_DIGEST_LEN 71         /* "sha256:" and 64 hexadecimal digits */

enum document_kind {
	DOCUMENT_INDEX,    /* an index: DIGEST, SIZE, NESTED of one of its images */
	DOCUMENT_MANIFEST, /* CONFIG, SIZE, then LAYER and SIZE for each */
	DOCUMENT_CONFIG,   /* DIFF for each layer, and how its program is started */
	DOCUMENT_DOCKER,   /* manifest.json of `docker save`: CONFIG and LAYERs as paths */
};

struct document_wish {
	const char *tag; /* of which image; NULL: of the only one there is */
	const char
		*arch; /* "amd64": of several, the one for this; a config for another is refused */
};

/* 0, or a sentence about what is wrong with it. */
int document_read(enum document_kind kind, struct slice json, const struct document_wish *wish,
	struct str *out, struct err *err);

/* Whether text is "sha256:" and 64 lowercase hexadecimal digits. */
int document_is_digest(struct slice text);

#endif
