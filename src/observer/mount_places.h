/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths of a sandbox lie on folders of the host, and what is told of them beside the event itself. Pure. */
#ifndef OBSERVER_MOUNT_PLACES_H
#define OBSERVER_MOUNT_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "event/event.h"
#include "util/scoped.h"

struct mount_place {
	const char *guest; /* absolute, clean */
	bool is_internal;  /* ours: nothing is told of it */
};

struct mount_places;

struct mount_places *mount_places_new(const struct mount_place *places, size_t n);
void mount_places_free(struct mount_places *places);
SCOPED_TYPE(mount_places)

/* Whether the innermost mount that holds this path is one of the user's. */
bool mount_places_has(const struct mount_places *places, struct slice path);
/* Makes of a file's event that of its mount (mount.create of a file.open that made the file). False: there is none,
 * and the event is as it was. */
bool mount_places_turn(const struct mount_places *places, struct event *ev);

#endif
