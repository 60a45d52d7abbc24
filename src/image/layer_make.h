/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a layer of a tar, compressed or not. Two children do what foreign bytes are read for, and we stand between them:
 *
 *   file -> child that takes the compression off -> we: SHA-256 -> child that makes the files
 *
 * So the digest under which a layer is kept is of what files were made of, whatever either child was made to do: one
 * that was taken over can spoil only the layer that holds what took it over. */
#ifndef IMAGE_LAYER_MAKE_H
#define IMAGE_LAYER_MAKE_H

#include <stdbool.h>

#include "image/layer_store.h"
#include "image/unpack.h"
#include "image/whiteout.h"
#include "util/digest.h"

struct layer_make {
	const struct layer_store *store;
	const struct unpack_limits *limits;
	const char *label; /* for people: "layer 2 of 5" */
	int file_fd;       /* at its beginning */
	bool is_known_whole; /* by a digest that it is held against: its tar may lack the end that tar(5) wants */
};

/* Fills temp. ret_digest: of the plain tar. */
int layer_make_fill(const struct layer_make *make, struct layer_temp *temp,
	char ret_digest[DIGEST_HEX_SIZE], struct whiteout_counts *ret_counts, struct err *err);

/* The layer of that digest: 0 where it is there already or is now. diff: 64 hexadecimal digits. ret_counts: what was left
 * out is added to it. */
int layer_make_named(const struct layer_make *make, const char *diff,
	struct whiteout_counts *ret_counts, struct err *err);

/* -EFBIG where a tar, compressed or not, is longer than the limits let one be: heads and padding come on top of what files
 * may take. */
int layer_make_check_len(const struct unpack_limits *limits, uint64_t len, struct err *err);

/* "sha256-..." of a digest, as layers are named. */
#define LAYER_MAKE_NAME_SIZE (DIGEST_HEX_SIZE + 7)
void layer_make_name(const char *diff, char ret_name[LAYER_MAKE_NAME_SIZE]);

#endif
