/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's kernel tells of files on mounts, whoever opens them and however: fanotify(7). Nothing inside a
 * sandbox can take the mark off a mount, since it can neither unmount nor make mounts.
 *
 * The mark is also how the observer's kernel half knows which files to count (observer/bpf/mounts.bpf.h). */
#ifndef OBSERVER_WITNESS_H
#define OBSERVER_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/err.h"
#include "util/scoped.h"

struct witness;

/* One event, of a file; several of one process and file may have become one. */
struct witness_event {
	bool opened, closed, closed_written; /* the latter: it had been open for writing */
	bool overflow;                       /* nothing else is set: the kernel threw events away */
	pid_t host_pid;
	int fd; /* the file, opened anew; the reader's to close. -1: none */
};

#define WITNESS_BATCH 128 /* events that one read gives at most */

/* 0, or why there can be none here. */
int witness_probe(struct err *err);

/* all: however many events wait, none is thrown away; for a sandbox that is held when nobody reads. */
int witness_open(bool all, struct witness **ret_witness, struct err *err);
void witness_free(struct witness *witness);
SCOPED_TYPE(witness)

/* From now on files on the mount behind this descriptor, attached or not, a folder or a single file. */
int witness_watch(struct witness *witness, int mount_fd, struct err *err);

int witness_fd(const struct witness *witness); /* readable: there are events */
/* How many there were, 0: none, or a negative errno; then events may be lost. */
int witness_read(struct witness *witness, struct witness_event events[WITNESS_BATCH]);

#endif
