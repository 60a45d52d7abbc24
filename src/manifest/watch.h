/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what changes below a folder, a line a settled change, for as long as it is asked to.
 *
 * It listens by inotify, a watch for each folder. fanotify with names would need one mark for a whole filesystem: of a
 * host's that wakes for everything anyone does there, and of an overlay Linux 6.1 gives none; inotify works on each, and
 * asks for no right. Its limits are the kernel's: what is written through a mapping is seen when the file is closed, what
 * is written by a name (hard link) outside the folder is not seen, and what changes in the host's folder below a
 * cow mount is no change of the mount.
 *
 * States: what happens is noted with the name (watch_event.c), and is told when it has settled (settle.h), from what is
 * there then and what was told before (watch_tell.c). So a file that was made and went within the time is not told,
 * and one that replaced another is told as written. A rename is told with both names; what is told of something in a
 * folder comes after what is told of the folder. Where the kernel's queue overflows, everything is read anew, and
 * what differs is told; so it is, without a word of it, where what is known does not fit what is there and no event says why.
 *
 * Folders move while they are read and looked at, and what is read is ahead of the events. So: a name says nothing unless its
 * folder was found by its own watch (the kernel gives one inode one number); what could not be looked at is looked at
 * again; and an event is right of its name in the end, as later ones follow, but what it moved from there may be another one.
 *
 * Names are opened from the root's descriptor on, over no link; the kernel's own filesystems are not entered. One thread. */
#ifndef MANIFEST_WATCH_H
#define MANIFEST_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"
#include "util/scoped.h"

#define WATCH_ENTRIES_MAX 1000000 /* names that one watch knows */

enum watch_kind {
	WATCH_CREATED,
	WATCH_WRITTEN,
	WATCH_RENAMED,
	WATCH_DELETED,
	WATCH_MODE, /* mode or owner */
	WATCH_OVERFLOW, /* the kernel lost events: what differs was or will be told, but not how it came so */
	WATCH_UNWATCHED, /* nothing is told of what is below this folder; reason says why */
	WATCH_N_KINDS
};

struct watch_change {
	enum watch_kind kind;
	const char *path, *from; /* below the folder, "" for itself; from: of a rename */
	int64_t at_ns;           /* the last that happened to it, by clock_mono_ns() */
	mode_t mode;             /* with the type; of what is deleted, as it was */
	uint32_t uid, gid;
	int64_t size;
	uint64_t links;
	size_t entries;  /* of a folder that is deleted: what was in it and is not told by itself */
	bool replaced;   /* something else lay there before */
	bool is_writing; /* told because it took long: its writer goes on */
	const char *reason;
};

struct watch_config {
	int root_fd;      /* the folder, readable; borrowed until watch_open() returns */
	const char *only; /* the one name in it to tell of; NULL: all */
	bool tell_all;    /* what is there already is told as created */
	size_t watches_max,
		entries_max; /* 0: half of the host's limit for a user; WATCH_ENTRIES_MAX */
	void (*tell)(void *arg, const struct watch_change *change); /* good for the call */
	void *arg;
};

struct watch;

/* Reads the folder whole. What cannot be watched in it is told; -ENOSPC, with a sentence, where the folder itself cannot. */
int watch_open(const struct watch_config *config, struct watch **ret_watch, struct err *err);
void watch_free(struct watch *watch);
SCOPED_TYPE(watch)

/* Readable when there is work; the watch's own. */
int watch_fd(const struct watch *watch);
/* Takes in what happened and tells what has settled. 0; 1: the folder itself is not there any more, which was told, and
 * there will be no more; -errno. */
int watch_work(struct watch *watch);
/* Tells at once what has not settled yet: the sandbox has ended. */
void watch_finish(struct watch *watch);

#endif
