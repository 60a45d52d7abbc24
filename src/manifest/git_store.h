/* SPDX-License-Identifier: Apache-2.0 */
/* A bare git repository of our own making that holds what a sandbox's repository has beyond the host's: its
 * configuration is ours, its one branch is the sandbox's HEAD, and its objects are copies of files whose names say
 * that they hold objects. The host's git fetches from it and checks every object. No index of a pack, no alternates,
 * no commit graph, no shallow or replaced commit of the sandbox is in it.
 *
 * It lies in the host's own object folder, where the sandbox cannot write, under a name beginning with "tmp_", which `git
 * gc` removes where a crash left it behind; so does the next call for the same sandbox. Files are written as the
 * folder's owner. */
#ifndef MANIFEST_GIT_STORE_H
#define MANIFEST_GIT_STORE_H

#include <sys/types.h>

#include "manifest/git_source.h"

#define GIT_STORE_BRANCH "cloche"

struct git_store {
	int objects_fd; /* the host's object folder */
	int fd;         /* the store itself */
	char *name;     /* in there */
	uid_t uid;      /* whose it is */
	gid_t gid;
	char **packs; /* "objects/pack/pack-....pack": each still needs its index */
	size_t n_packs;
	size_t n_copied;
};

/* Makes it and fills it. git_fd: the host's git folder. name: of the sandbox, so that there is one for each. Release
 * with git_store_done() whatever it returned, which removes it. */
int git_store_make(int git_fd, const char *name, uid_t uid, gid_t gid,
	const struct git_source *source, struct git_store *ret_store, struct err *err);
void git_store_done(struct git_store *store);

#endif
