/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/content.h"
#include "manifest/stack.h"
#include "util/digest.h"
#include "util/mem.h"

#define NEW_NAME "new"

char *kept_name(const struct change_layer *layer, size_t number, const char *path)
{
	/* Layers stay where they are for as long as anything needs them. */
	scoped_mem char *whole = mem_printf("%s/%s", stack_dir(layer, number), path);
	char hex[DIGEST_HEX_SIZE];

	digest_of(whole, strlen(whole), hex);
	return mem_dup(hex);
}

int kept_open_folder(const struct change_layer *layer)
{
	int fd = open(layer->kept, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int kept_has(int folder_fd, const char *name)
{
	if (faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

static int write_new(int dirfd, int data_fd)
{
	scoped_fd int fd = openat(
		dirfd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : content_copy(data_fd, fd);

	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int kept_put(const struct change_layer *layer, const char *name, int data_fd)
{
	scoped_fd int dirfd = -1;
	int r;

	if (mkdir(layer->kept, 0700) < 0 && errno != EEXIST)
		return -errno;
	dirfd = kept_open_folder(layer);
	if (dirfd < 0)
		return dirfd;
	r = kept_has(dirfd, name);
	if (r != 0)
		return r < 0 ? r : 0;
	r = write_new(dirfd, data_fd);
	if (r == 0 && renameat(dirfd, NEW_NAME, dirfd, name) < 0)
		r = -errno;
	return r == 0 && fsync(dirfd) < 0 ? -errno : r;
}
