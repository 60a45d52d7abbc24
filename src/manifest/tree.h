/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest: everything below a folder at one moment, with the SHA-256 of each regular file.
 *
 * Several threads walk and read at once, since a tree of small files costs system calls more than hashing. No link is
 * followed, no mount entered, nothing opened that is no regular file or folder; names are bytes. What changes or
 * goes meanwhile is said. */
#ifndef MANIFEST_TREE_H
#define MANIFEST_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/digest.h"
#include "util/err.h"

/* Why an entry says less than it might. */
enum tree_problem {
	TREE_WHOLE,
	TREE_CHANGED, /* its content changed each time it was read: no hash */
	TREE_HOLES,   /* far larger than what is on the disk: no hash */
	TREE_UNREADABLE, /* no right to, too deep, or the disk failed: no hash, or not all from below the folder */
	TREE_MOUNT,   /* another filesystem, or a file mounted here: not entered */
	TREE_SKIPPED, /* a folder whose name is skipped: not entered */
	TREE_N_PROBLEMS
};

struct tree_entry {
	char *path;  /* below the root, without a slash at either end */
	mode_t mode; /* with the type; 0: not known, from a list of sums */
	uint32_t uid, gid;
	int64_t size;                     /* regular files: bytes */
	uint32_t major, minor;            /* devices */
	char *target;                     /* links: their text; else NULL */
	char sha256[DIGEST_HEX_SIZE];     /* "" where there is none */
	char attributes[DIGEST_HEX_SIZE]; /* content_attributes() of a regular file */
	enum tree_problem problem;
};

struct tree {
	struct tree_entry *items; /* by path, bytes in order */
	size_t n;
	int64_t bytes;   /* that were read */
	size_t vanished; /* listed by their folder, gone when they were looked at */
};

struct tree_config {
	int root_fd; /* the folder; borrowed */
	/* Ids as the sandbox counts them: those from id_base on are shown less it. 0: as they are. */
	uint32_t id_base, id_count;
	bool all; /* also what lies below .git and node_modules */
};

/* The caller owns *ret_tree's content. -EFBIG past TREE_ENTRIES_MAX. */
#define TREE_ENTRIES_MAX 20000000
/* Bytes of a path; folders below are not entered, and are told as unreadable. Each costs a look-up of its whole path. */
#define TREE_PATH_MAX 8192
int tree_read(const struct tree_config *config, struct tree *ret_tree, struct err *err);
void tree_done(struct tree *tree);

/* For those who build trees: one more entry, zeroed; takes path. */
struct tree_entry *tree_add(struct tree *tree, char *path);
void tree_sort(struct tree *tree);

#endif
