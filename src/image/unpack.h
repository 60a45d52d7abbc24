/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the files of one tar in the folder that is our root: in a child without privilege (jail.h). What leads out leads
 * nowhere, since there is nothing but the folder; what cannot be meant is refused with a sentence.
 *
 * Left out and counted: device nodes and sockets (a sandbox has a /dev of its own), attributes but user.* and
 * security.capability. Whiteouts (".wh.NAME", ".wh..wh..opq") are not made but told: only the parent may. */
#ifndef IMAGE_UNPACK_H
#define IMAGE_UNPACK_H

#include "image/jail.h"

struct unpack_limits {
	uint64_t bytes;   /* of all files, as written and as claimed */
	uint64_t entries; /* with the folders above them that the tar does not have itself */
	bool any_owner;   /* ids beyond those of a sandbox are counted and become root's */
};

/* jail_work: the tar from 0, to its end. ctx: struct unpack_limits. Parcels: WHITEOUT, OPAQUE, then counts. */
int unpack_run(void *ctx, struct str *report, struct err *err);
extern const struct callfilter unpack_filter;

#endif
