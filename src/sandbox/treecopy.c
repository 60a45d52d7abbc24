/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/treecopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/scoped.h"

#define MAX_DEPTH   64
#define MAX_ENTRIES 1000000u
#define LINK_MAX    4096
#define CHUNK       (16u << 20)

struct place {
	int from, to;
	size_t depth;
	struct str *path; /* of the folder, below the source: "" or "ssl/certs" */
};

static int copy_folder(struct treecopy *copy, struct place at);

static int copy_bytes(int from, int to, off_t len)
{
	ssize_t n = 1;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	for (off_t done = 0; done < len && n > 0; done += n) {
		n = sendfile(to, from, NULL, CHUNK);
		if (n < 0)
			return -errno;
	}
	return 0;
}

/* What was told of the file is of another one where it was replaced meanwhile. Holes are copied as zeros. */
static int count_bytes(struct treecopy *copy, const struct stat *st)
{
	copy->n_bytes += (uint64_t)st->st_size;
	return copy->max_bytes > 0 && copy->n_bytes > copy->max_bytes ? -E2BIG : 0;
}

static int copy_file(
	struct treecopy *copy, struct place at, const char *name, const struct stat *st)
{
	const struct timespec times[2] = {st->st_mtim, st->st_mtim};
	scoped_fd int from = openat(at.from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
		      to = -1;
	int r;

	if (from < 0)
		return errno == ENOENT ? 0 : -errno;
	r = count_bytes(copy, st);
	if (r < 0)
		return r;
	to = openat(at.to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to < 0)
		return -errno;
	r = copy_bytes(from, to, st->st_size);
	if (r < 0)
		return r;
	if (fchown(to, st->st_uid, st->st_gid) < 0 || fchmod(to, st->st_mode & 0777) < 0 ||
		futimens(to, times) < 0)
		return -errno;
	return 0;
}

static int copy_link(struct place at, const char *name, const struct stat *st)
{
	char target[LINK_MAX];
	ssize_t n = readlinkat(at.from, name, target, sizeof(target) - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	target[n] = '\0';
	if (symlinkat(target, at.to, name) < 0)
		return -errno;
	return fchownat(at.to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_mode(int folder, const struct stat *st)
{
	if (fchown(folder, st->st_uid, st->st_gid) < 0 || fchmod(folder, st->st_mode & 01777) < 0)
		return -errno;
	return 0;
}

static int copy_subfolder(
	struct treecopy *copy, struct place at, const char *name, const struct stat *st)
{
	scoped_fd int from = openat(at.from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
		      to = -1;
	int r;

	if (from < 0)
		return errno == ENOENT ? 0 : -errno;
	if (mkdirat(at.to, name, 0700) < 0)
		return -errno;
	to = openat(at.to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (to < 0)
		return -errno;
	r = copy_mode(to, st);
	if (r < 0)
		return r;
	if (at.depth + 1 >= MAX_DEPTH)
		return -ELOOP;
	return copy_folder(copy,
		(struct place){.from = from, .to = to, .depth = at.depth + 1, .path = at.path});
}

static bool is_skipped(const struct treecopy *copy, const char *path)
{
	for (const char *const *s = copy->skip; s && *s; s++)
		if (strcmp(*s, path) == 0)
			return true;
	return false;
}

static int copy_entry(struct treecopy *copy, struct place at, const char *name)
{
	struct stat st;

	if (is_skipped(copy, at.path->p) || fstatat(at.from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (++copy->n_entries > (copy->max_entries ? copy->max_entries : MAX_ENTRIES))
		return -E2BIG;
	switch (st.st_mode & S_IFMT) {
	case S_IFLNK:
		return copy_link(at, name, &st);
	case S_IFREG:
		return copy->is_whole || st.st_mode & S_IROTH ? copy_file(copy, at, name, &st) : 0;
	case S_IFDIR:
		return copy->is_whole || (st.st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH)
		               ? copy_subfolder(copy, at, name, &st)
		               : 0;
	default:
		return 0;
	}
}

static int copy_folder(struct treecopy *copy, struct place at)
{
	size_t len = at.path->len;
	struct dirent *entry;
	int fd = fcntl(at.from, F_DUPFD_CLOEXEC, 0), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return -errno;
	if (copy->ret_folders)
		str_add(copy->ret_folders, at.path->p ? at.path->p : "", len + 1);
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (len > 0)
			str_putc(at.path, '/');
		str_puts(at.path, entry->d_name);
		r = copy_entry(copy, at, entry->d_name);
		at.path->len = len;
		at.path->p[len] = '\0';
	}
	r = r == 0 ? -errno : r;
	(void)closedir(dir);
	return r;
}

/* Of a source that is as it was looked at and judged: no link has come into its way. */
static int open_source(const struct treecopy *copy, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = copy->is_whole ? RESOLVE_NO_SYMLINKS : 0};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

int treecopy_run(struct treecopy *copy, const char *from, const char *to, struct err *err)
{
	scoped_str struct str path = {0};
	scoped_fd int from_fd = open_source(copy, from);
	scoped_fd int to_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int r;

	if (from_fd < 0 || to_fd < 0)
		return err_set(err, -errno, "copy '%s' to '%s': %m", from, to);
	str_reserve(&path, LINK_MAX);
	path.p[0] = '\0';
	r = copy_folder(copy, (struct place){.from = from_fd, .to = to_fd, .path = &path});
	if (r == 0 && copy->is_whole)
		r = fstat(from_fd, &st) < 0 ? -errno : copy_mode(to_fd, &st);
	return r < 0 ? err_set(err, r, "copy '%s' to '%s': %m", from, to) : 0;
}

int treecopy_file(
	struct treecopy *copy, const char *from, const char *to, const char *name, struct err *err)
{
	scoped_mem char *folder = mem_dup(from);
	char *slash = strrchr(folder, '/');
	scoped_fd int to_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from_fd = -1;
	struct stat st;
	int r;

	*slash++ = '\0';
	from_fd = open_source(copy, folder[0] ? folder : "/");
	if (from_fd < 0 || to_fd < 0 || fstatat(from_fd, slash, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, -errno, "copy '%s' to '%s': %m", from, to);
	r = copy_file(copy, (struct place){.from = from_fd, .to = to_fd}, slash, &st);
	if (r == 0 && strcmp(slash, name) != 0 && renameat(to_fd, slash, to_fd, name) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "copy '%s' to '%s': %m", from, to) : 0;
}
