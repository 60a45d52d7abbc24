/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/images/KEY.json: what a reference was resolved to, so that the next run reads no archive and asks no registry.
 * The time of the file is when the image was used last. docs/images.md has its form. */
#ifndef IMAGE_IMAGE_FILE_H
#define IMAGE_IMAGE_FILE_H

#include "image/image.h"
#include "image/layer_store.h"
#include "util/str.h"

struct image_file_key {
	const char *state_dir;
	const char *reference; /* as asked for */
	const char *source; /* where that is: an absolute path with its tag, or a registry's name */
	const char *identity; /* of what lies there; what has another one is another image */
};

/* 1 where it is known and all its layers are there: its text; it is used now. */
int image_file_find(
	const struct image_file_key *key, const struct layer_store *store, struct str *ret_text);
/* Writes it; ret_text as above. */
int image_file_write(const struct image_file_key *key, const struct layer_store *store,
	const struct image *image, struct str *ret_text, struct err *err);

#endif
