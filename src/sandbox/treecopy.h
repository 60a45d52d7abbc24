/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a folder of the host as everybody may see it: what others may not read is a secret and left out. */
#ifndef SANDBOX_TREECOPY_H
#define SANDBOX_TREECOPY_H

#include <stddef.h>

#include "util/err.h"
#include "util/str.h"

struct treecopy {
	const char *const
		*skip; /* paths below the source to leave out, ends with NULL; NULL: none */
	struct str
		*ret_folders; /* NULL, or gets the path of each folder read, one NUL behind each */
	size_t n_entries;     /* copied so far */
};

/* Copies what is in from into to, both existing folders. Owner, mode and time stay; links stay links;
 * sockets, pipes and devices are left out. Stops with -E2BIG past a million entries. */
int treecopy_run(struct treecopy *copy, const char *from, const char *to, struct err *err);

#endif
