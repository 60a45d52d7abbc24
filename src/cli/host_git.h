/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the host's git on one repository, as the owner of its folder, with nothing of what might make it run something
 * else: no hooks, no settings but the repository's own, no network, no editor, no environment of ours. */
#ifndef CLI_HOST_GIT_H
#define CLI_HOST_GIT_H

#include "cli/cli.h"
#include "util/str.h"

struct host_git {
	const struct cli *cli;
	int dir_fd; /* the git folder */
	const char *
		dir; /* "." or, where its work tree is to be known, its name from its parent, which dir_fd is then */
	uid_t uid;
	gid_t gid;
};

/* Runs `git ARGS...` (at most HOST_GIT_ARGS_MAX, ended by NULL). Its exit status, what it printed without the last
 * line's end in out and what it complained of in why. -ENOENT where there is no git; -EIO, -EFBIG as caller_tool_run(). */
#define HOST_GIT_ARGS_MAX 15
int host_git_run(
	const struct host_git *git, const char *const *args, struct str *out, struct str *why);

#endif
