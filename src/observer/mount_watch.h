/* SPDX-License-Identifier: Apache-2.0 */
/* Files on mounted folders: when each is closed, how much was read and written through it, and what was opened
 * though no call told of it.
 *
 * How it works: records tell of opens; the kernel half counts from there on. A close is told by the witness,
 * whose event names the file; which of the opens of that file it was, and its count, the kernel half says when
 * it is asked (wire_look). Events of the witness are read before the ring is, and joined after: an open that no
 * record tells within a second was made by no call of a traced process. */
#ifndef OBSERVER_MOUNT_WATCH_H
#define OBSERVER_MOUNT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "observer/decode.h"
#include "observer/witness.h"
#include "util/scoped.h"

struct mount_watch_config {
	struct witness *witness; /* taken over */
	int look_fd, opens_fd;   /* of the kernel half; borrowed */
	int64_t start_ns;
	void (*emit)(void *ctx, struct event *ev); /* exec and internal are set */
	void *ctx;
};

struct mount_watch;

struct mount_watch *mount_watch_new(const struct mount_watch_config *config);
void mount_watch_free(struct mount_watch *watch);
SCOPED_TYPE(mount_watch)

int mount_watch_fd(const struct mount_watch *watch); /* readable: read it */

/* Whose doing a record tells of. */
struct mount_watch_who {
	struct slice exec;
	bool internal;
};

/* A record of whatever kind, before its events. */
void mount_watch_record(struct mount_watch *watch, const struct decode_head *head,
	const struct mount_watch_who *who);
/* And an event of it, when it was told: an open of a file that is to be watched, a program that was started,
 * names that changed. */
void mount_watch_event(struct mount_watch *watch, const struct decode_head *head,
	const struct mount_watch_who *who, const struct event *ev);

/* Before the ring is read, and when it was read: to its end (is_empty) or as far as one goes at once. The former returns true
 * where there is more to be read after the latter. */
bool mount_watch_read(struct mount_watch *watch);
void mount_watch_join(struct mount_watch *watch, bool is_empty);

/* So many ms from now it is to be read and joined again, whatever happens; -1: only when something does. */
int mount_watch_wait_ms(const struct mount_watch *watch);

/* Nothing runs any more, and all was read: tells what is left. */
void mount_watch_end(struct mount_watch *watch);

#endif
