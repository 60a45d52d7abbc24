/* SPDX-License-Identifier: Apache-2.0 */
/* A git repository as a sandbox left it, read without git: nothing of its configuration, hooks or attributes counts, only where
 * HEAD stands and the files that hold objects. */
#ifndef MANIFEST_GIT_SOURCE_H
#define MANIFEST_GIT_SOURCE_H

#include "manifest/git_text.h"
#include "util/err.h"

struct git_source {
	int fd;       /* its git folder */
	char *folder; /* where that is below the top: "sub/.git", or "sub" where the repository is bare */
	char branch[GIT_TEXT_NAME_MAX + 1]; /* "refs/heads/main"; "" where HEAD is detached */
	char id[GIT_TEXT_ID_SIZE];          /* the commit, as far as HEAD can be believed */
};

/* The repository at path below top_fd ("." for the top). -ENOENT where there is none. shown: what it is called in
 * sentences. Release with git_source_done() whatever it returned. */
int git_source_open(int top_fd, const char *path, const char *shown, struct git_source *ret_source,
	struct err *err);
void git_source_done(struct git_source *source);

#endif
