/* SPDX-License-Identifier: Apache-2.0 */
/* One writable layer over a folder of the host: an overlay mounted from outside, so that its marks are
 * trusted.* attributes, which nobody inside can forge, and its copies keep our rights. */
#ifndef SANDBOX_LAYER_H
#define SANDBOX_LAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

struct layer {
	int dir_fd;         /* in which <prefix>upper and <prefix>work are made */
	const char *prefix; /* "usr.", or "0/" for a folder of its own */
	const char *lower;  /* absolute path */
	int over_fd;     /* a mount attached nowhere, laid over lower below the upper; -1: none */
	int userns_fd;   /* maps the lower's ids */
	uint32_t owner;  /* host id of root inside: owns the upper */
	mode_t mode;     /* of the layer's top folder */
	bool throw_away; /* never synced */
};

/* The mount, attached nowhere. Takes the kernel's newer way (lower layers by descriptor) or, before it was
 * there or with CLOCHE_OLD_OVERLAY=1, the way of 6.1: the mapped copy of the lower is attached in a mount
 * namespace of our own while the overlay is made. */
int layer_open(const struct layer *layer, struct err *err);

#endif
