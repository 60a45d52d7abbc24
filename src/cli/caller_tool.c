/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/caller_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/scoped.h"

#define OUTPUT_MAX (1 << 20)
#define LIMIT_S    15 /* then it is ended by its alarm */
#define FAILED     126
#define NOT_FOUND  127 /* as a shell says it */
#define FIRST_FD   3
#define FDS_MAX    2

static int become(uid_t uid, gid_t gid)
{
	const struct passwd *pw = getpwuid(uid);

	if (uid == geteuid())
		return 0;
	if ((pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid)) < 0 || setgid(gid) < 0 ||
		setuid(uid) < 0)
		return -errno;
	if (pw)
		(void)setenv("HOME", pw->pw_dir, 1); /* out of memory: its settings are not found */
	return 0;
}

/* As 3 and on, and nothing else; out of the way first, so that none is overwritten. */
static int hand_over(const struct caller_tool *tool)
{
	int high[FDS_MAX];

	for (size_t i = 0; i < tool->n_fds; i++) {
		high[i] = fcntl(tool->fds[i], F_DUPFD_CLOEXEC, FIRST_FD + FDS_MAX);
		if (high[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < tool->n_fds; i++)
		if (dup2(high[i], FIRST_FD + (int)i) < 0)
			return -errno;
	return close_range(FIRST_FD + (unsigned)tool->n_fds, ~0U, 0);
}

static _Noreturn void run(const struct cli *cli, const struct caller_tool *tool, int out)
{
	const struct caller_tool_as *as = tool->as;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if ((as && fchdir(as->dir_fd) < 0) ||
		become(as ? as->uid : cli->uid, as ? as->gid : cli->gid) < 0 || dup2(null, 0) < 0 ||
		dup2(out, 1) < 0 || dup2(as ? as->err_fd : null, 2) < 0 || hand_over(tool) < 0)
		_exit(FAILED);
	alarm(as ? as->limit_s : LIMIT_S);
	execvpe(tool->argv[0], (char *const *)tool->argv, as ? (char *const *)as->env : environ);
	_exit(NOT_FOUND);
}

int caller_tool_run(const struct cli *cli, const struct caller_tool *tool, struct str *out)
{
	int ends[2], status = 0, r;
	pid_t pid;

	if (tool->n_fds > FDS_MAX || pipe2(ends, O_CLOEXEC) < 0)
		return tool->n_fds > FDS_MAX ? -EINVAL : -errno;
	pid = fork();
	if (pid == 0)
		run(cli, tool, ends[1]);
	close(ends[1]);
	r = pid < 0 ? -errno : fdio_read_all(ends[0], tool->max, out);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	if (!WIFEXITED(status))
		return -EIO;
	return WEXITSTATUS(status) == NOT_FOUND ? -ENOENT : WEXITSTATUS(status);
}

int caller_tool_output(const struct cli *cli, const char *const *argv, struct str *out)
{
	int r = caller_tool_run(cli, &(struct caller_tool){.argv = argv, .max = OUTPUT_MAX}, out);

	return r > 0 ? -EIO : r;
}
