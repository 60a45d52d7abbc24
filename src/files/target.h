/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to what lies there. This program is one process of the sandbox among others, with its root and as its root
 * user, so whatever links are on the way, and whoever swaps them, nothing but the sandbox's own is reached. What is left to
 * do is to open nothing that acts when it is opened or read: only regular files and folders, looked at before they are
 * opened, and none of the kernel's own (procfs, sysfs, /dev). */
#ifndef FILES_TARGET_H
#define FILES_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "util/slice.h"

struct target {
	int fd; /* O_PATH */
	struct stat st;
	char *path; /* where it is, all links followed */
};

/* What is there; a path that leads nowhere, or to a place of the kernel, ends the program. */
void target_find(struct slice path, struct target *ret);
/* To be read, where it is of that kind: a descriptor; else this ends the program. */
int target_open_file(const struct target *target);
int target_try_file(const struct target *target); /* -1 where it is none, or not readable */
int target_open_folder(const struct target *target);

/* A folder, found while walking, that holds the kernel's files. */
bool target_is_kernels(int fd, const struct stat *st);

/* Where a file is or may be made: links followed, also the last. */
struct target_place {
	struct target folder;
	char *name, *path;
	bool exists;
	struct stat st; /* of what is there: a regular file */
};
/* parents: makes the folders that are missing on the way. */
void target_find_place(struct slice path, bool parents, struct target_place *ret);

#endif
