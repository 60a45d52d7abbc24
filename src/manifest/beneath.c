/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/scoped.h"

#define PATH_STEP 4000 /* bytes of a path that one look-up takes: the kernel's limit is 4,096 */

static int open_at(int dirfd, const char *path, int flags, bool is_across)
{
	struct open_how how = {
		.flags = (unsigned long long)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
	                   (is_across ? 0 : RESOLVE_NO_XDEV),
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

static int open_far(int root_fd, const char *path, int flags, bool is_across)
{
	scoped_fd int at = -1;

	while (strlen(path) > PATH_STEP) {
		const char *end = memrchr(path, '/', PATH_STEP);
		scoped_mem char *step = end ? mem_copy(path, (size_t)(end - path)) : NULL;
		int next =
			step ? open_at(at < 0 ? root_fd : at, step, O_PATH | O_DIRECTORY, is_across)
			     : -ENAMETOOLONG;

		if (next < 0)
			return next;
		scoped_close(&at);
		at = next;
		path = end + 1;
	}
	return open_at(at < 0 ? root_fd : at, path, flags, is_across);
}

int beneath_open(int dirfd, const char *path, int flags)
{
	return open_far(dirfd, path, flags, false);
}

static int open_folder(int root_fd, const char *path, bool is_across)
{
	return open_far(root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY, is_across);
}

int beneath_open_folder(int root_fd, const char *path)
{
	return open_folder(root_fd, path, false);
}

int beneath_open_across(int root_fd, const char *path)
{
	return open_folder(root_fd, path, true);
}

int beneath_open_parent(int dirfd, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	scoped_mem char *parent = slash ? mem_copy(path, (size_t)(slash - path)) : mem_dup(".");
	int fd = beneath_open(dirfd, parent, O_RDONLY | O_DIRECTORY);

	if (fd >= 0)
		*ret_name = slash ? slash + 1 : path;
	return fd;
}

int beneath_stat(int dirfd, const char *path, struct stat *ret_st)
{
	const char *name;
	scoped_fd int fd = beneath_open_parent(dirfd, path, &name);

	if (fd < 0)
		return fd;
	return fstatat(fd, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}
