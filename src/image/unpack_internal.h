/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of unpack.c. For src/image/unpack*.c only. */
#ifndef IMAGE_UNPACK_INTERNAL_H
#define IMAGE_UNPACK_INTERNAL_H

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <time.h>

#include "image/unpack.h"

#define UNPACK_PATH_MAX (PATH_MAX - 1)

/* A path of an archive made clean: relative, no ".", no "..", no empty parts. Empty: the root itself. */
struct unpack_path {
	char text[PATH_MAX];
	size_t len;
	char *name; /* its last part, in text */
};
/* Refuses what is too long and what climbs. Pure. */
int unpack_path_set(struct unpack_path *path, const char *given, struct err *err);

/* The folder that something goes into, and the last one that was used: archives go folder by folder. */
struct unpack_place {
	int root;
	int folder; /* O_PATH; -1: none yet */
	char path[PATH_MAX];
	size_t len;
	uint64_t n_made; /* folders that the archive does not have itself */
};
/* The folder above path, made with those above it where it is missing. Links in it lead where they lead inside.
 * Borrowed until the next call. */
int unpack_place_above(struct unpack_place *place, const struct unpack_path *path);
/* To be called when a folder or a link may have gone. */
void unpack_place_forget(struct unpack_place *place);
/* Likewise, for a whiteout: no part of it may be a link. */
int unpack_place_plain(struct unpack_place *place, const struct unpack_path *path);

/* A folder's time is set at the end: what is made in it would change it. */
struct unpack_late {
	char *path;
	struct timespec time;
};

struct unpack {
	const struct unpack_limits *limits;
	struct archive *archive;
	struct unpack_place place;
	struct unpack_late *late;
	size_t n_late, cap_late;
	uint64_t n_entries, bytes, claimed, n_devices, n_xattrs, n_strangers;
	struct str *report;
};

/* Makes what entry says at path. */
int unpack_entry_make(struct unpack *u, struct archive_entry *entry, const struct unpack_path *path,
	struct err *err);
/* Owner, mode, attributes and time of a file or folder that is open. */
int unpack_owner_set(struct unpack *u, struct archive_entry *entry, int fd, struct err *err);
/* uid and gid, beyond what a sandbox has: refused, or another's. */
int unpack_owner_check(struct unpack *u, struct archive_entry *entry, struct err *err);
struct timespec unpack_owner_time(struct archive_entry *entry);

#endif
