/* SPDX-License-Identifier: Apache-2.0 */
/* How the threads of tree_read() share the work: tree.c hands it out, tree_walk.c does it. */
#ifndef MANIFEST_TREE_INTERNAL_H
#define MANIFEST_TREE_INTERNAL_H

#include "manifest/pool.h"
#include "manifest/tree.h"

/* An open folder whose names wait in several jobs. */
struct tree_folder {
	char *path; /* below the root, "" for itself */
	int fd;
	unsigned n_users; /* atomic */
};

/* A folder to be listed, or some names of one to be looked at. */
struct tree_job {
	struct pool_job head;
	char *path;                 /* of the folder to be listed, or NULL */
	struct tree_folder *folder; /* else where the names are, */
	char *names;                /* each behind its d_type and with its NUL, */
	size_t len;                 /* so many bytes */
};

struct tree_work {
	const struct tree_config *config;
	struct pool pool;
	size_t n_found; /* atomic */
};

struct tree_worker {
	struct tree_work *work;
	struct tree found;
	char *buffer; /* for content, of TREE_BUFFER bytes; NULL until it is needed */
};
#define TREE_BUFFER (128 * 1024)

char *tree_path_below(const char *folder, const char *name); /* "" is the root */
struct tree_job *tree_job_new(char *path);                   /* takes the folder's path */
void tree_job_free(struct tree_job *job);
void tree_walk(struct tree_worker *worker, struct tree_job *job);

/* Fills in a regular file: opened, read, its hash and attributes. 0, or -errno where it cannot be opened. */
int tree_read_file(
	struct tree_worker *worker, int folder_fd, const char *name, struct tree_entry *entry);
/* Type, mode, owner, size and device of an entry. */
struct stat;
void tree_take_stat(
	const struct tree_config *config, const struct stat *st, struct tree_entry *entry);

#endif
