/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/over.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/idrange.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"

#define PIECE_LEN 65536

int over_open(const struct over *over, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NONBLOCK),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, over->root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

bool over_find(const struct over *over, int fd, char ret[OVER_PATH_LEN])
{
	size_t skip = strcmp(over->real, "/") == 0 ? 0 : strlen(over->real);
	char link[64], path[OVER_PATH_LEN];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= (ssize_t)skip + 1 || n >= (ssize_t)sizeof(path) - 1)
		return false;
	path[n] = '\0';
	if (strncmp(path, over->real, skip) != 0 || path[skip] != '/')
		return false;
	memcpy(ret, path + skip + 1, (size_t)n - skip);
	return true;
}

/* Files of a shared layer have the sandbox's own ids already. */
static uint32_t own_id(const struct over *over, uint32_t id)
{
	if (id < IDRANGE_LEN)
		return over->owner + id;
	return id - over->owner < IDRANGE_LEN ? id : over->owner;
}

int over_copy_owner(const struct over *over, const char *path, const struct stat *st)
{
	uid_t uid = own_id(over, st->st_uid);
	gid_t gid = own_id(over, st->st_gid);

	if (fchownat(over->to, path, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(st->st_mode) && fchmodat(over->to, path, st->st_mode & 07777, 0) < 0)
		return -errno;
	return 0;
}

static int make_folder(const struct over *over, const char *path)
{
	struct stat st = {.st_mode = S_IFDIR | 0755};

	(void)fstatat(over->root, path, &st, AT_SYMLINK_NOFOLLOW); /* a new one is root's */
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR; /* a link there is not to be covered */
	if (mkdirat(over->to, path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return over_copy_owner(over, path, &st);
}

static int make_folders_above(const struct over *over, const char *path)
{
	scoped_mem char *part = mem_dup(path);
	int r = 0;

	for (char *slash = strchr(part, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_folder(over, part);
		*slash = '/';
	}
	return r;
}

int over_create(const struct over *over, const char *path)
{
	int fd, r = make_folders_above(over, path);

	if (r < 0)
		return r;
	fd = openat(over->to, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

int over_put(const struct over *over, const char *path, struct slice text, mode_t mode)
{
	const struct stat st = {.st_mode = S_IFREG | mode};
	scoped_fd int fd = over_create(over, path);
	int r = fd < 0 ? fd : fdio_write_all(fd, text.p, text.len);

	return r < 0 ? r : over_copy_owner(over, path, &st);
}

int over_link(const struct over *over, const char *path, const char *target)
{
	const struct stat st = {.st_mode = S_IFLNK};
	int r = make_folders_above(over, path);

	if (r < 0)
		return r;
	if (symlinkat(target, over->to, path) < 0)
		return -errno;
	return over_copy_owner(over, path, &st);
}

int over_copy(int from_fd, uint64_t at, uint64_t end, int to_fd,
	void (*see)(void *data, const char *p, size_t len), void *data)
{
	char piece[PIECE_LEN];
	int r = 0;

	while (r == 0 && at < end) {
		size_t want = end - at < sizeof(piece) ? (size_t)(end - at) : sizeof(piece);
		ssize_t n = pread(from_fd, piece, want, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		if (see)
			see(data, piece, (size_t)n);
		r = fdio_write_all(to_fd, piece, (size_t)n);
		at += (uint64_t)n;
	}
	return r;
}
