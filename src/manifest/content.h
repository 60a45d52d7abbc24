/* SPDX-License-Identifier: Apache-2.0 */
/* What is in one file: its SHA-256, its user attributes, a copy of it. Opens regular files only, follows no link. */
#ifndef MANIFEST_CONTENT_H
#define MANIFEST_CONTENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/digest.h"
#include "util/str.h"

/* A file past this is not hashed: one call inside makes a file of holes as large as it likes. */
#define CONTENT_HASH_MAX (2LL << 30)

/* Opens a regular file for reading. -EBADF where something else is there now. */
int content_open(int dirfd, const char *name, struct stat *ret_st);
/* SHA-256 of an open file from its start. Counts what it reads down from *budget; -EFBIG past it or past
 * CONTENT_HASH_MAX. */
int content_hash(int fd, int64_t *budget, char ret_hex[DIGEST_HEX_SIZE]);
/* One value for the names and values of a file's user.* attributes and whether it has capabilities, "" where
 * it has none of that. */
int content_attributes(int fd, char ret_hex[DIGEST_HEX_SIZE]);
bool content_has_capabilities(int fd);
/* Copies the user.* attributes. */
int content_copy_attributes(int from, int to);
/* Names of attributes that mean rights (security.*, POSIX access lists), separated by ", ". */
int content_rights_attributes(int fd, struct str *ret_names);
/* Copies data and holes of one open file to another, empty one. */
int content_copy(int from, int to);
/* The text of a link. -EINVAL where it is none, -ENAMETOOLONG past PATH_MAX. */
int content_read_link(int dirfd, const char *name, char **ret_target);

#endif
