/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/scoped.h"

int beneath_open(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned long long)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
	                   RESOLVE_NO_XDEV,
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
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
