/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/caller_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"

struct rights {
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t n_groups;
};

/* Ours, kept for later. */
static int keep_rights(struct rights *rights)
{
	int n = getgroups(0, NULL);

	if (n < 0)
		return -errno;
	*rights = (struct rights){.uid = geteuid(), .gid = getegid(), .n_groups = (size_t)n};
	rights->groups = new0_n(gid_t, (size_t)n + 1);
	if (getgroups(n, rights->groups) == n)
		return 0;
	free(rights->groups);
	return -EAGAIN;
}

static int become_caller(const struct cli *cli)
{
	const struct passwd *pw = getpwuid(cli->uid);
	int r = pw ? initgroups(pw->pw_name, cli->gid) : setgroups(1, &cli->gid);

	if (r < 0 || setegid(cli->gid) < 0 || seteuid(cli->uid) < 0)
		return -errno;
	return 0;
}

static void become_self(struct rights *rights)
{
	/* With less than our rights nothing that follows would be right. */
	if (seteuid(rights->uid) < 0 || setegid(rights->gid) < 0 ||
		setgroups(rights->n_groups, rights->groups) < 0)
		abort();
	free(rights->groups);
}

/* Not waiting for whoever reads a pipe. */
static int open_path(const char *path)
{
	bool is_ours = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/self/", 11) == 0;
	int fd = open(path,
		O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
			(is_ours ? 0 : O_NOFOLLOW),
		0644);

	return fd < 0 ? -errno : fd;
}

static int open_as_caller(const struct cli *cli, const char *path)
{
	struct rights rights = {0};
	int r;

	if (cli->uid == geteuid())
		return open_path(path);
	r = keep_rights(&rights);
	if (r < 0)
		return r;
	r = become_caller(cli);
	if (r == 0)
		r = open_path(path);
	become_self(&rights);
	return r;
}

int caller_file_write(const struct cli *cli, const char *path, struct slice text, struct err *err)
{
	int r = open_as_caller(cli, path);
	scoped_fd int fd = r;

	if (r == -ELOOP)
		return err_set(err, r,
			"write '%s': it is a link, which what runs inside may have made: name the "
			"file itself",
			path);
	if (r >= 0)
		r = fdio_write_all(fd, text.p, text.len);
	return r < 0 ? err_set(err, r, "write '%s': %m", path) : 0;
}
