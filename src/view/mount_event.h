/* SPDX-License-Identifier: Apache-2.0 */
/* mount.* as views take it: what file.* has told of a path is not told twice, and where only mounts were traced
 * their events stand for those of files. */
#ifndef VIEW_MOUNT_EVENT_H
#define VIEW_MOUNT_EVENT_H

#include "event/event.h"

struct mount_event {
	bool has_files; /* of the trace that was started last */
	struct event turned;
};

/* All events pass through this. The event itself, or file.* in its place (good until the next call), or NULL where
 * it tells nothing new. mount.close stays what it is: it has the byte counts. */
const struct event *mount_event_take(struct mount_event *state, const struct event *ev);

#endif
