/* SPDX-License-Identifier: Apache-2.0 */
/* Sees what a box does, from the host's kernel. One set of programs for the host, loaded once and pinned;
 * one ring for each sandbox. Used by one thread of the supervisor; `fd` goes into its loop.
 *
 * Says what it could not see: trace.dropped with a count, trace.blind with a reason, both as events. */
#ifndef OBSERVER_OBSERVER_H
#define OBSERVER_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "event/sink.h"
#include "observer/mount_places.h"
#include "observer/witness.h"
#include "util/err.h"
#include "util/scoped.h"

struct observer;

struct observer_config {
	const char *id;      /* sandbox id */
	const char *pin_dir; /* our own bpffs: /run/cloche/bpf, or a test's own */
	unsigned sources;    /* OBSERVER_* bits */
	size_t buffer_bytes; /* what may wait to be read, the ring included; 0: a ring and no more */
	int root_fd;         /* O_PATH of the box's root; borrowed */
	pid_t init_pid;      /* pid 1 of the box, host's number */
	int64_t start_ns;    /* CLOCK_MONOTONIC at guest_ns 0 */
	struct event_sink *sink; /* borrowed; called by what drains, removes a cgroup, or ends */
	void (*hold)(void *ctx,
		bool on); /* the box shall stand still until the reader has caught up; may be
	                                     NULL; called by any thread, one at a time */
	void *hold_ctx;
	/* With OBSERVER_MOUNTS: the mounts of the box, and who watches them; taken over. Without a witness closes
	 * and byte counts are not told. */
	const struct mount_place *mounts;
	size_t n_mounts;
	struct witness *witness;
};

#define OBSERVER_PROCESSES 1u
#define OBSERVER_FILES     2u
#define OBSERVER_OUTPUTS   4u
#define OBSERVER_MOUNTS    8u

/* 0, or why this host or build cannot observe (no BTF, no rights, built without): -ENOSYS, -EPERM, ... */
int observer_probe(struct err *err);

/* Loads or finds the pinned programs, makes the ring, links it. The caller owns *ret_observer. The witness is taken
 * over in any case. */
int observer_open(
	const struct observer_config *config, struct observer **ret_observer, struct err *err);
void observer_free(struct observer *observer); /* detaches; the last one out unpins the links */
SCOPED_TYPE(observer)

/* Everything in this cgroup belongs to exec_id from now on. internal: our own helpers. Cheap (a hash update). */
int observer_add_cgroup(struct observer *observer, uint64_t cgroup_id, const char *exec_id,
	bool internal, struct err *err);
/* Only when the cgroup is empty and drained. */
void observer_remove_cgroup(struct observer *observer, uint64_t cgroup_id);

/* Readable: call observer_drain(). After a drain that found something, call again after
 * OBSERVER_POLL_MS until OBSERVER_QUIET_MS were empty; then observer_arm() and wait on fd. */
#define OBSERVER_POLL_MS  5
#define OBSERVER_QUIET_MS 100
int observer_fd(const struct observer *observer);
/* Decodes up to max_records (0: all that is there) and emits their events. Returns how many there were. */
int observer_drain(struct observer *observer, size_t max_records);
/* After the last drain, when nothing runs any more: tells what nothing will bear out now. */
void observer_end(struct observer *observer);
/* Lets the kernel wake us for the next event; returns true where something already waits (drain again). */
bool observer_arm(struct observer *observer);

/* So many ms after that, drain all the same; -1: only when woken. */
int observer_wait_ms(const struct observer *observer);

bool observer_is_held(const struct observer *observer); /* hold(true) came last: drain at once */

/* Drains what waited when it was called: after the end of a process, with its exit. 0, or -ETIMEDOUT where
 * nothing came for deadline_ms, or the witness of mounts had more to tell than can be read in two seconds: the slice
 * is not complete. */
int observer_drain_exit(struct observer *observer, int deadline_ms);

struct observer_counts {
	uint64_t events, dropped, blind;
};
void observer_get_counts(const struct observer *observer, struct observer_counts *ret_counts);

/* For gc: drains into sink what a dead supervisor left in its pinned ring and removes the pins; unpins the
 * programs when no other sandbox uses them. Everything missing is fine. */
int observer_salvage(const char *pin_dir, const char *id, struct event_sink *sink, struct err *err);

#endif
