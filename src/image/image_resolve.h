/* SPDX-License-Identifier: Apache-2.0 */
/* From a reference to layers that are there: what is known is taken, the rest is read, fetched, unpacked. */
#ifndef IMAGE_IMAGE_RESOLVE_H
#define IMAGE_IMAGE_RESOLVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "image/unpack.h"
#include "util/err.h"
#include "util/str.h"

struct image_request {
	const char *state_dir;
	const char *reference;
	uid_t uid; /* who asks: skopeo runs as him */
	gid_t gid;
	bool is_anew; /* ask the registry also where the image is known */
	struct unpack_limits limits;
};

/* ret_json: what image_file.h writes. ret_note: what was left out of layers that were unpacked now, for people; empty
 * where nothing was. */
int image_resolve(const struct image_request *request, struct str *ret_json, struct str *ret_note,
	struct err *err);

#endif
