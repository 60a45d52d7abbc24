/* SPDX-License-Identifier: Apache-2.0 */
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "files/outcome.h"
#include "util/mem.h"

#define PATH_LEN  4096 /* with its NUL */
#define LINKS_MAX 40

static const unsigned long kernels[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
	CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, BPF_FS_MAGIC,
	NSFS_MAGIC, SECURITYFS_MAGIC, BINFMTFS_MAGIC, ANON_INODE_FS_MAGIC, PIPEFS_MAGIC,
	SOCKFS_MAGIC, 0x19800202 /* mqueue */};

static bool is_in_dev(const struct stat *st)
{
	static struct stat dev, root;
	static bool is_known;

	if (!is_known)
		is_known = stat("/dev", &dev) == 0 && stat("/", &root) == 0;
	return is_known && dev.st_dev != root.st_dev && st->st_dev == dev.st_dev;
}

bool target_is_kernels(int fd, const struct stat *st)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if ((unsigned long)fs.f_type == kernels[i])
			return true;
	return is_in_dev(st);
}

/* Links of procfs that lead to what another process has open are no names. Where the call filter refuses openat2, they lead
 * to the sandbox's own all the same. */
static int open_path(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags), .resolve = RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	if (fd < 0 && errno == ENOSYS)
		fd = openat(dirfd, path, O_PATH | O_CLOEXEC | flags);
	return (int)fd;
}

static char *path_of(int fd)
{
	char link[32], text[PATH_LEN];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, text, sizeof(text));
	if (n < 0)
		outcome_fail(FILES_WIRE_FAILED, "look up an open file: %s", strerror(errno));
	return mem_copy(text, (size_t)n);
}

static bool is_at_dev(const char *path)
{
	return strcmp(path, "/dev") == 0 || strncmp(path, "/dev/", 5) == 0;
}

static void fill(int fd, struct target *ret)
{
	ret->fd = fd;
	if (fstat(fd, &ret->st) < 0)
		outcome_fail(FILES_WIRE_FAILED, "look at an open file: %s", strerror(errno));
	ret->path = path_of(fd);
	if (target_is_kernels(fd, &ret->st) || is_at_dev(ret->path))
		outcome_fail(FILES_WIRE_FORBIDDEN,
			"'%.300s' is a place of the kernel: there are no files for this",
			ret->path);
}

/* Absolute: nobody has a current folder here. */
static char *text_of(struct slice path)
{
	if (path.len == 0 || path.p[0] != '/')
		outcome_fail(FILES_WIRE_INVALID, "a path begins with '/'");
	if (path.len >= PATH_LEN)
		outcome_fail(FILES_WIRE_INVALID, "a path has at most %d bytes", PATH_LEN - 1);
	return mem_copy(path.p, path.len);
}

void target_find(struct slice path, struct target *ret)
{
	char *text = text_of(path);
	int fd = open_path(AT_FDCWD, text, 0);

	if (fd < 0)
		outcome_fail_errno(errno, "find", text);
	fill(fd, ret);
	free(text);
}

/* By the descriptor: what was looked at is what is opened. */
static int try_open(const struct target *target, int flags)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", target->fd);
	return open(link, flags | O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int reopen(const struct target *target, int flags)
{
	int fd = try_open(target, flags);

	if (fd < 0)
		outcome_fail_errno(errno, "open", target->path);
	return fd;
}

static const char *kind_of(mode_t mode)
{
	return S_ISDIR(mode)    ? "a folder"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISLNK(mode)  ? "a link"
	                        : "a device";
}

static void want_file(const char *path, mode_t mode)
{
	if (!S_ISREG(mode))
		outcome_fail(
			FILES_WIRE_NOT_FILE, "'%.300s' is %s, not a file", path, kind_of(mode));
}

int target_open_file(const struct target *target)
{
	want_file(target->path, target->st.st_mode);
	return reopen(target, 0);
}

int target_try_file(const struct target *target)
{
	return S_ISREG(target->st.st_mode) ? try_open(target, 0) : -1;
}

int target_open_folder(const struct target *target)
{
	if (!S_ISDIR(target->st.st_mode))
		outcome_fail(FILES_WIRE_NOT_FOLDER, "'%.300s' is %s, not a folder", target->path,
			S_ISREG(target->st.st_mode) ? "a file" : kind_of(target->st.st_mode));
	return reopen(target, O_DIRECTORY);
}

/* ---- where to write ---- */

static int open_folder(int dirfd, const char *path, const char *whole)
{
	int fd = open_path(dirfd, path, O_DIRECTORY);

	if (fd < 0 && errno == ENOTDIR)
		outcome_fail(
			FILES_WIRE_NOT_FOLDER, "the path '%.300s' leads through a file", whole);
	if (fd < 0)
		outcome_fail_errno(errno, "find the folder of", whole);
	return fd;
}

/* Each missing folder is made in one that was looked at, not by its path. */
static void make_parents(const char *path)
{
	char *copy = mem_dup(path), *rest = copy, *slash;
	int at = open_folder(AT_FDCWD, "/", path);

	while (rest += strspn(rest, "/"), (slash = strchr(rest, '/'))) {
		struct target here = {0};
		int next;

		*slash = '\0';
		next = open_path(at, rest, O_DIRECTORY);
		if (next < 0 && errno == ENOENT) {
			fill(at, &here);
			if (mkdirat(at, rest, 0755) < 0 && errno != EEXIST)
				outcome_fail_errno(errno, "make a folder for", path);
			free(here.path);
			next = open_folder(at, rest, path);
		} else if (next < 0) {
			outcome_fail_errno(errno, "find the folder of", path);
		}
		(void)close(at);
		at = next;
		rest = slash + 1;
	}
	(void)close(at);
	free(copy);
}

/* One step: the folder of path, counted from dirfd, and the name in it. */
static void find_folder(int dirfd, const char *path, const char *whole, struct target_place *ret)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? mem_copy(path, (size_t)(slash + 1 - path)) : mem_dup(".");

	ret->name = mem_dup(slash ? slash + 1 : path);
	if (!*ret->name || strcmp(ret->name, ".") == 0 || strcmp(ret->name, "..") == 0)
		outcome_fail(
			FILES_WIRE_NOT_FILE, "the path '%.300s' names a folder, not a file", whole);
	fill(open_folder(dirfd, folder, whole), &ret->folder);
	free(folder);
}

/* The link's text, or NULL where there is none. */
static char *link_of(const struct target_place *place)
{
	char text[PATH_LEN];
	ssize_t n;

	if (!place->exists || !S_ISLNK(place->st.st_mode))
		return NULL;
	n = readlinkat(place->folder.fd, place->name, text, sizeof(text) - 1);
	if (n < 0)
		outcome_fail_errno(errno, "read the link", place->path);
	return mem_copy(text, (size_t)n);
}

static void look(struct target_place *place)
{
	const char *folder = place->folder.path;

	place->path =
		mem_printf("%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/", place->name);
	place->exists =
		fstatat(place->folder.fd, place->name, &place->st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!place->exists && errno != ENOENT)
		outcome_fail_errno(errno, "look at", place->path);
}

void target_find_place(struct slice path, bool parents, struct target_place *ret)
{
	char *whole = text_of(path), *next = mem_dup(whole);
	int from = AT_FDCWD;

	if (parents)
		make_parents(whole);
	for (int i = 0; next; i++) {
		*ret = (struct target_place){0};
		if (i == LINKS_MAX)
			outcome_fail_errno(ELOOP, "find", whole);
		find_folder(from, next, whole, ret);
		look(ret);
		free(next);
		next = link_of(ret);
		from = ret->folder.fd; /* the few of a chain of links go with the process */
	}
	free(whole);
	if (ret->exists)
		want_file(ret->path, ret->st.st_mode);
}
