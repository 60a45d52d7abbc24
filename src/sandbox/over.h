/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that is laid over a root's lower folder: files that this sandbox alone has, below its own layer, so that
 * they are no changes of its. Folders on the way to them have the owner and mode of those below. */
#ifndef SANDBOX_OVER_H
#define SANDBOX_OVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/slice.h"

#define OVER_PATH_LEN 4096

/* The caller's. Paths are relative to the root; all of them get owner or negative errnos. */
struct over {
	int root;                 /* the lower folder */
	char real[OVER_PATH_LEN]; /* its path, with no link in it */
	int to;                   /* what is laid over it */
	uint32_t owner;           /* host id of root inside */
};

/* In the lower folder as it is seen from inside, whatever links there are. */
int over_open(const struct over *over, const char *path, int flags);
/* Where in it that is, without links; false where it cannot be told. */
bool over_find(const struct over *over, int fd, char ret[OVER_PATH_LEN]);

/* A new file and the folders above it; returns its descriptor. It is the host's root's until it is given an owner. */
int over_create(const struct over *over, const char *path);
/* Mode and owner of one that is there, as the sandbox's own map has them. */
int over_copy_owner(const struct over *over, const char *path, const struct stat *st);
int over_put(const struct over *over, const char *path, struct slice text, mode_t mode);
int over_link(const struct over *over, const char *path, const char *target);

/* Bytes of one file into another, in pieces (memory that was never used costs more than the copy), each shown to see,
 * which may be NULL. -EIO where the file is shorter. */
int over_copy(int from_fd, uint64_t at, uint64_t end, int to_fd,
	void (*see)(void *data, const char *p, size_t len), void *data);

#endif
