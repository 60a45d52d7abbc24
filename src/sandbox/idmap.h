/* SPDX-License-Identifier: Apache-2.0 */
/* Which ids of a filesystem are which ids inside: as lines of a user namespace's maps, and as a user
 * namespace made only to carry them (mount_setattr(2), MOUNT_ATTR_IDMAP). */
#ifndef SANDBOX_IDMAP_H
#define SANDBOX_IDMAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

#define IDMAP_MAX_LINES 6

struct idmap_line {
	uint32_t disk; /* id in the filesystem */
	uint32_t host; /* id the kernel sees through the mount: BASE + id inside */
	uint32_t n;
};

struct idmap {
	struct idmap_line lines[IDMAP_MAX_LINES];
	size_t n;
};

/* All ids, read or copied on write: owner is 0 inside, every other id below 65,536 itself, the
 * filesystem's 0 takes the place that owner left. Pure. */
void idmap_all(struct idmap *map, uint32_t owner, uint32_t base);
/* Written through to the host: owner is 0 inside, and ids inside stay in the sandbox's own range outside,
 * so that nothing made inside is ever another user's. What belongs to others is nobody's. Pure. */
void idmap_owner_only(struct idmap *map, uint32_t owner, uint32_t base);
/* Whether the map is that of the whole sandbox, 0 BASE 65536. */
int idmap_is_plain(const struct idmap *map, uint32_t base);

/* A user namespace with these maps; returns its descriptor. */
int idmap_open_userns(const struct idmap *uids, const struct idmap *gids, struct err *err);

#endif
