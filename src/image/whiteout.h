/* SPDX-License-Identifier: Apache-2.0 */
/* The marks of a layer that hide what lies below it, put there as overlayfs's own: a character device 0:0, and the
 * attribute trusted.overlay.opaque. By the privileged parent, beneath the layer's folder and through no link, after a
 * list that the unpacking child sends and that is not to be trusted. */
#ifndef IMAGE_WHITEOUT_H
#define IMAGE_WHITEOUT_H

#include <stdint.h>

#include "util/err.h"
#include "util/slice.h"

#define WHITEOUT_OPAQUE "trusted.overlay.opaque"

struct whiteout_counts {
	unsigned long long n_devices, n_xattrs, n_entries, n_strangers; /* of unpack.h */
};

/* report: parcels of unpack_run(). fs_fd: the layer's folder, readable; owner owns the marks. */
int whiteout_put_all(int fs_fd, uint32_t owner, struct slice report,
	struct whiteout_counts *ret_counts, struct err *err);

/* Where path ends in a name that may be hidden: its length without that name (and the slash); -EBADMSG. Pure. */
int whiteout_split(struct slice path, struct slice *ret_folder, struct slice *ret_name);

#endif
