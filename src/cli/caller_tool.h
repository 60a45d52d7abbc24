/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one of the caller's own programs with his rights, never with ours, and reads what it prints. */
#ifndef CLI_CALLER_TOOL_H
#define CLI_CALLER_TOOL_H

#include "cli/cli.h"
#include "util/str.h"

/* Somebody else than the caller, elsewhere than here. */
struct caller_tool_as {
	uid_t uid;
	gid_t gid;
	int dir_fd;             /* its current folder */
	const char *const *env; /* all of its environment; ends with NULL */
	unsigned limit_s;
	int err_fd; /* where its errors go */
};

struct caller_tool {
	const char *const *argv; /* ends with NULL; found by PATH */
	const int *fds;          /* it has them as 3, 4, ...; borrowed */
	size_t n_fds;
	size_t max;                      /* bytes that it may print */
	const struct caller_tool_as *as; /* NULL: as the caller, with our folder and environment */
};

/* Its exit status. -ENOENT where it is not there, -EIO where a signal ended it or it took too long, -EFBIG past max. */
int caller_tool_run(const struct cli *cli, const struct caller_tool *tool, struct str *out);

/* 0 where it went well. -ENOENT, or -EIO where it failed in any way. */
int caller_tool_output(const struct cli *cli, const char *const *argv, struct str *out);

#endif
