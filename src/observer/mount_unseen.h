/* SPDX-License-Identifier: Apache-2.0 */
/* Opens that the witness of mounts saw and no record has told yet. A record that is only late settles them; one
 * that does not come within UNSEEN_NS leaves them to be told as what they are: made by the kernel (a core dump, the
 * file of a script), or by a process that came in from outside. */
#ifndef OBSERVER_MOUNT_UNSEEN_H
#define OBSERVER_MOUNT_UNSEEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "event/event.h"
#include "observer/wire.h"
#include "util/clock.h"
#include "util/scoped.h"

#define MOUNT_UNSEEN_NS  (1 * CLOCK_NS_PER_S)
#define MOUNT_UNSEEN_MAX 4096

struct mount_unseen_open {
	uint64_t inode;
	pid_t host_pid;
	int64_t pid; /* inside; 0: it has none there, or is not known */
	int64_t guest_ns;
	bool internal;
	bool entered; /* of no exec of ours */
	char exec[WIRE_ID_SIZE];
};

struct mount_unseen;

struct mount_unseen *mount_unseen_new(void);
void mount_unseen_free(struct mount_unseen *unseen);
SCOPED_TYPE(mount_unseen)

/* Copies. False: there is no room. */
bool mount_unseen_add(
	struct mount_unseen *unseen, const struct mount_unseen_open *open, struct slice path);
/* A record tells of it after all. True: its close was seen already. */
bool mount_unseen_settle(struct mount_unseen *unseen, uint64_t inode, pid_t host_pid);
void mount_unseen_closed(struct mount_unseen *unseen, uint64_t inode, bool written);
bool mount_unseen_waits(const struct mount_unseen *unseen); /* for a record, or for its time */
/* The next event of those that are older than MOUNT_UNSEEN_NS at that time: mount.open, and mount.close where it was
 * closed. False: there is none. It is good until the next call. */
bool mount_unseen_next(struct mount_unseen *unseen, int64_t now_ns, struct event *ret_ev);

/* The number of a process in its innermost pid namespace; 0 where it has none but the host's, or has ended. */
int64_t mount_unseen_pid(pid_t host_pid);

#endif
