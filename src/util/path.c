/* SPDX-License-Identifier: Apache-2.0 */
#include "util/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/scoped.h"

#define DEPTH_MAX 4096 /* folders within folders that a removal goes down */

static void add_part(struct str *out, struct slice part)
{
	if (part.len == 0 || slice_is(part, "."))
		return;
	if (!slice_is(part, "..")) {
		str_putc(out, '/');
		str_add(out, part.p, part.len);
		return;
	}
	while (out->len > 0 && out->p[out->len - 1] != '/')
		out->len--;
	if (out->len > 0)
		out->len--;
	if (out->p)
		out->p[out->len] = '\0';
}

static void add_parts(struct str *out, struct slice path)
{
	for (size_t i = 0; i < path.len;) {
		size_t n = 0;

		while (i + n < path.len && path.p[i + n] != '/')
			n++;
		add_part(out, (struct slice){.p = path.p + i, .len = n});
		i += n + 1;
	}
}

void path_resolve(struct slice base, struct slice path, struct str *out)
{
	str_reset(out);
	if (path.len == 0 || path.p[0] != '/')
		add_parts(out, base);
	add_parts(out, path);
	if (out->len == 0)
		str_putc(out, '/');
}

bool path_is_beneath(struct slice path, struct slice folder)
{
	if (folder.len == 1 && folder.p[0] == '/')
		return path.len > 0 && path.p[0] == '/';
	return path.len >= folder.len && memcmp(path.p, folder.p, folder.len) == 0 &&
	       (path.len == folder.len || path.p[folder.len] == '/');
}

int path_make_all(const char *path, mode_t mode)
{
	scoped_mem char *copy = mem_dup(path);

	for (char *slash = copy + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = '\0';
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(copy, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static int remove_below(int dirfd, const char *name, dev_t dev, int depth);

static int remove_entries(int fd, dev_t dev, int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while ((e = readdir(dir))) {
		int one;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		one = remove_below(dirfd(dir), e->d_name, dev, depth + 1);
		if (one < 0)
			r = one;
	}
	closedir(dir);
	return r;
}

static int remove_below(int dirfd, const char *name, dev_t dev, int depth)
{
	struct stat st;
	int fd, r;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* somebody else removes it, too */
	if (fstat(fd, &st) < 0 || (dev && st.st_dev != dev)) {
		close(fd);
		return -EXDEV;
	}
	r = remove_entries(fd, st.st_dev, depth);
	if (r == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int path_remove_all(int dirfd, const char *name)
{
	return remove_below(dirfd, name, 0, 0);
}

int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned long long)(flags | O_CLOEXEC),
		.mode = (flags & O_CREAT) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}
