/* SPDX-License-Identifier: Apache-2.0 */
/* Names below an open folder: no link is followed on the way, none leads out, no mount is crossed. */
#ifndef MANIFEST_BENEATH_H
#define MANIFEST_BENEATH_H

#include <sys/stat.h>

/* openat2; -EXDEV, -ELOOP where the way leads out or over a link. In steps where the path is longer than the kernel
 * takes. Close-on-exec. */
int beneath_open(int dirfd, const char *path, int flags);
/* A folder to list, "" for dirfd itself. */
int beneath_open_folder(int root_fd, const char *path);
/* The same, also beyond mounts. */
int beneath_open_across(int root_fd, const char *path);
/* Opens the folder that holds path; *ret_name points at the last part, in path. */
int beneath_open_parent(int dirfd, const char *path, const char **ret_name);
/* lstat(). */
int beneath_stat(int dirfd, const char *path, struct stat *ret_st);

#endif
