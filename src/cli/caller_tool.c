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
#define LIMIT_S    15  /* then it is ended by its alarm */
#define NOT_FOUND  127 /* as a shell says it */

static int become(const struct cli *cli)
{
	const struct passwd *pw = getpwuid(cli->uid);

	if (cli->uid == geteuid())
		return 0;
	if ((pw ? initgroups(pw->pw_name, cli->gid) : setgroups(1, &cli->gid)) < 0 ||
		setgid(cli->gid) < 0 || setuid(cli->uid) < 0)
		return -errno;
	if (pw)
		(void)setenv("HOME", pw->pw_dir, 1); /* out of memory: its settings are not found */
	return 0;
}

static _Noreturn void run(const struct cli *cli, const char *const *argv, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (become(cli) < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	(void)close_range(3, ~0U, 0);
	alarm(LIMIT_S);
	execvp(argv[0], (char *const *)argv);
	_exit(NOT_FOUND);
}

int caller_tool_output(const struct cli *cli, const char *const *argv, struct str *out)
{
	int ends[2], status = 0, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		run(cli, argv, ends[1]);
	close(ends[1]);
	r = pid < 0 ? -errno : fdio_read_all(ends[0], OUTPUT_MAX, out);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
		return -ENOENT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}
