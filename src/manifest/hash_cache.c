/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/hash_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define FILES_MAX 32          /* folders, and */
#define BYTES_MAX (1LL << 30) /* bytes that are kept of them */
#define NAME_SIZE 64

static int name_of(int root_fd, char name[NAME_SIZE])
{
	struct stat st;

	if (fstat(root_fd, &st) < 0)
		return -errno;
	(void)snprintf(name, NAME_SIZE, "%llx-%llx", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return 0;
}

static int open_folder(const char *state_dir, bool make)
{
	scoped_mem char *path = mem_printf("%s/hashes", state_dir);
	int r = make ? path_make_all(path, 0700) : 0, fd;

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int hash_cache_open(const char *state_dir, int root_fd, struct snapshot **ret_snapshot)
{
	scoped_fd int fd = open_folder(state_dir, false);
	char name[NAME_SIZE];
	int r = fd < 0 ? fd : name_of(root_fd, name);

	return r < 0 ? r : snapshot_open(fd, name, false, ret_snapshot);
}

struct kept {
	char oldest[NAME_SIZE];
	struct timespec oldest_at;
	size_t n;
	int64_t bytes;
};

static bool is_older(struct timespec a, struct timespec b)
{
	return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

static int count(int fd, struct kept *ret)
{
	int names_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = names_fd < 0 ? NULL : fdopendir(names_fd);
	struct dirent *e;
	struct stat st;

	*ret = (struct kept){0};
	if (!dir) {
		scoped_close(&names_fd);
		return -errno;
	}
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.' || strlen(e->d_name) >= NAME_SIZE ||
			fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		ret->n++;
		ret->bytes += st.st_size;
		if (!ret->oldest[0] || is_older(st.st_mtim, ret->oldest_at)) {
			(void)snprintf(ret->oldest, NAME_SIZE, "%s", e->d_name);
			ret->oldest_at = st.st_mtim;
		}
	}
	closedir(dir);
	return 0;
}

/* Down to the bounds; the newest one stays whatever its size. */
static void drop_old(int fd)
{
	struct kept kept;

	for (size_t i = 0; i < FILES_MAX && count(fd, &kept) == 0; i++) {
		if (kept.n <= 1 || (kept.n <= FILES_MAX && kept.bytes <= BYTES_MAX) ||
			unlinkat(fd, kept.oldest, 0) < 0)
			return;
	}
}

int hash_cache_keep(const char *state_dir, int root_fd, int dirfd, const char *name)
{
	scoped_fd int fd = open_folder(state_dir, true);
	char to[NAME_SIZE];
	int r = fd < 0 ? fd : name_of(root_fd, to);

	if (r < 0)
		return r;
	/* Its age is that of its last use. */
	(void)utimensat(dirfd, name, NULL, AT_SYMLINK_NOFOLLOW);
	if (renameat(dirfd, name, fd, to) < 0)
		return -errno;
	drop_old(fd);
	return 0;
}
