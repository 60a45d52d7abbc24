/* SPDX-License-Identifier: Apache-2.0 */
/* One writable layer over folders of the host: an overlay mounted from outside, so that its marks are
 * trusted.* attributes, which nobody inside can forge, and its copies keep our rights. */
#ifndef SANDBOX_LAYER_H
#define SANDBOX_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox/quota.h"
#include "spec/spec.h"
#include "util/err.h"

/* Of one layer, besides what lies below and over them. */
#define LAYER_MAX_LOWERS SPEC_LOWERS_AT_MAX
#define LAYER_OWN_MAP    (-2)

/* A shared layer, which is never written to. */
struct layer_lower {
	const char *dir; /* absolute path */
	uint32_t base;   /* first host id in it; 0: as in a folder of the host */
	int userns_fd; /* maps its ids; -1: as they are, LAYER_OWN_MAP: as those of the layer's own lower */
};

struct layer {
	int dir_fd;         /* in which <prefix>upper and <prefix>work are made */
	const char *prefix; /* "usr.", or "0/" for a folder of its own */
	const char *lower;  /* absolute path of what lies at the bottom; NULL: nothing but lowers */
	const struct layer_lower *lowers; /* above it, topmost first */
	size_t n_lowers;
	int over_fd; /* a mount attached nowhere, laid over all of them below the upper; -1: none */
	int userns_fd;             /* maps lower's ids */
	uint32_t owner;            /* host id of root inside: owns the upper */
	mode_t mode;               /* of the layer's top folder where it is made */
	bool throw_away;           /* never synced */
	const struct quota *quota; /* what it may hold; NULL: no limit */
};

/* The mount, attached nowhere. Takes the kernel's newer way (lower layers by descriptor) or, before it was
 * there or with CLOCHE_OLD_OVERLAY=1, the way of 6.1: the mapped copies of the lowers are attached in a mount
 * namespace of our own while the overlay is made. An upper that is there is gone on with as it is. */
int layer_open(const struct layer *layer, struct err *err);

/* What the layer shows without its upper and over_fd, read-only and attached nowhere. */
int layer_open_below(const struct layer *layer, struct err *err);

#endif
