/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as text, and folders on disk. */
#ifndef UTIL_PATH_H
#define UTIL_PATH_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/slice.h"
#include "util/str.h"

/* Joins and cleans: out becomes an absolute path without ".", "" or ".." parts. base is absolute and clean;
 * an absolute path replaces it. Symbolic links are not looked at. */
void path_resolve(struct slice base, struct slice path, struct str *out);
bool path_is_beneath(struct slice path, struct slice folder); /* the folder itself counts */

/* Makes a folder and those above it; one that exists is fine. */
int path_make_all(const char *path, mode_t mode);
/* Removes a tree below dirfd without following links or leaving its filesystem; not there is fine.
 * It may be of any depth: a few descriptors do. */
int path_remove_all(int dirfd, const char *name);
/* openat2 beneath dirfd: no link leads out, none is magic. A descriptor or a negative errno. */
int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/* Opens a path that had no link when it was judged: -ELOOP where one has come into its way since, anywhere in it.
 * Close-on-exec. */
int path_open_judged(const char *path, int flags);

#endif
