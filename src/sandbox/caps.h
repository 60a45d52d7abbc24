/* SPDX-License-Identifier: Apache-2.0 */
/* Which capabilities root inside may ever have (capabilities(7)): what installing and building software
 * needs. They count only against ids of the sandbox's own range. */
#ifndef SANDBOX_CAPS_H
#define SANDBOX_CAPS_H

#include <stdint.h>

/* Cuts the bounding set down to those; raw calls only. 0 or a negative errno. */
int caps_bound(void);
/* Leaves none at all, and none to be had. */
int caps_drop_all(void);
/* Likewise, but those whose bits are set: permitted and effective, gone with an execve. */
int caps_keep(uint64_t keep);

/* So that an execve gives none, whoever does it; those that are had stay until then. */
int caps_drop_bounding(void);

#endif
