/* SPDX-License-Identifier: Apache-2.0 */
#include "util/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/scoped.h"

/* Folders that a removal has open at once. What lies deeper, as deep as somebody hostile liked, is moved up first. */
#define DEPTH_MAX 24
#define MOVED_LEN 24

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

/* One removal of a tree. */
struct removal {
	int top_fd;
	dev_t dev;
	unsigned n_names; /* tried for those */
	bool has_moved;   /* a folder that was too deep */
};

/* To the top of the tree, which is gone through again then. */
static int move_up(struct removal *w, int dirfd, const char *name)
{
	char to[MOVED_LEN];

	do {
		(void)snprintf(to, sizeof(to), ".deep-%u", w->n_names++);
		if (renameat(dirfd, name, w->top_fd, to) == 0) {
			w->has_moved = true;
			return 0;
		}
	} while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
	return errno == ENOENT ? 0 : -errno;
}

static int remove_below(struct removal *w, int dirfd, const char *name, int depth);

/* Takes fd. */
static int remove_entries(struct removal *w, int fd, int depth)
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
		one = remove_below(w, dirfd(dir), e->d_name, depth + 1);
		if (one < 0)
			r = one;
	}
	closedir(dir);
	return r;
}

/* A folder; -ENOENT where there is nothing (any more). */
static int open_folder(int dirfd, const char *name)
{
	int fd;

	if (unlinkat(dirfd, name, 0) == 0)
		return -ENOENT;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR ? -EPERM : -errno; /* a file that may not be taken away */
	return fd;
}

static int remove_folder(int dirfd, const char *name)
{
	return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static int remove_below(struct removal *w, int dirfd, const char *name, int depth)
{
	struct stat st;
	int fd, r;

	fd = open_folder(dirfd, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0 || st.st_dev != w->dev) {
		close(fd);
		return -EXDEV;
	}
	if (depth > DEPTH_MAX) {
		close(fd);
		return move_up(w, dirfd, name);
	}
	r = remove_entries(w, fd, depth);
	return r < 0 ? r : remove_folder(dirfd, name);
}

int path_remove_all(int dirfd, const char *name)
{
	scoped_fd int top_fd = open_folder(dirfd, name);
	struct removal w = {.top_fd = top_fd};
	struct stat st;
	int r = 0;

	if (top_fd < 0)
		return top_fd == -ENOENT ? 0 : top_fd;
	if (fstat(top_fd, &st) < 0)
		return -errno;
	w.dev = st.st_dev;
	do {
		int fd = openat(top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		w.has_moved = false;
		r = fd < 0 ? -errno : remove_entries(&w, fd, 0);
	} while (w.has_moved);
	return r < 0 ? r : remove_folder(dirfd, name);
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

int path_open_judged(const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned long long)(flags | O_CLOEXEC),
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}
