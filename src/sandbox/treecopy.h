/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a folder of the host: as everybody may see it, so that what others may not read is a secret and left out, or
 * whole. */
#ifndef SANDBOX_TREECOPY_H
#define SANDBOX_TREECOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"
#include "util/str.h"

struct treecopy {
	const char *const
		*skip; /* paths below the source to leave out, ends with NULL; NULL: none */
	struct str
		*ret_folders; /* NULL, or gets the path of each folder read, one NUL behind each */
	bool is_whole; /* also what only its owner may read and the folder's own owner and mode;
	                  the source is a path without links, -ELOOP where one is in it now */
	size_t max_entries; /* 0: a million */
	uint64_t max_bytes; /* of files; 0: no limit */
	size_t n_entries;   /* copied so far */
	uint64_t n_bytes;
};

/* Copies what is in from into to, both existing folders. Owner, mode and time stay; links stay links;
 * sockets, pipes and devices are left out. Stops with -E2BIG past a limit. */
int treecopy_run(struct treecopy *copy, const char *from, const char *to, struct err *err);
/* Copies the file from to the name `name` in the existing folder to. */
int treecopy_file(
	struct treecopy *copy, const char *from, const char *to, const char *name, struct err *err);

#endif
