/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/unpack_internal.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define LATE_STEP 256

/* What an earlier entry made there goes, but a folder stays one. */
static int clear(struct unpack *u, int folder, const char *name, bool wants_folder, struct err *err)
{
	struct stat st;
	int r;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(err, -errno, "look at its place: %m");
	if (wants_folder && S_ISDIR(st.st_mode))
		return 0;
	u->place.len =
		SIZE_MAX; /* what folder is now may lead elsewhere: the next entry opens its own anew */
	r = path_remove_all(folder, name);
	return r < 0 ? err_set(err, r, "remove what was there before: %m") : 0;
}

static int too_big(const struct unpack *u, struct err *err)
{
	return err_set(err, -EFBIG,
		"the files before it and it take more than %llu bytes: where that is meant, raise "
		"CLOCHE_IMAGE_MAX",
		(unsigned long long)u->limits->bytes);
}

static int write_block(
	struct unpack *u, int fd, const char *block, size_t len, la_int64_t at, struct err *err)
{
	if (at < 0 || (uint64_t)at > u->limits->bytes || len > u->limits->bytes - u->bytes)
		return too_big(u, err);
	u->bytes += len;
	while (len > 0) {
		ssize_t n = pwrite(fd, block, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, -errno, "write it: %m");
		block += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

static int write_data(struct unpack *u, int fd, la_int64_t size, struct err *err)
{
	const void *block;
	size_t len;
	la_int64_t at;
	int r;

	for (;;) {
		r = archive_read_data_block(u->archive, &block, &len, &at);
		if (r == ARCHIVE_EOF)
			break;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return err_set(err, -EBADMSG, "the archive ends within it, or is damaged");
		r = write_block(u, fd, block, len, at, err);
		if (r < 0)
			return r;
	}
	/* Sparse to its end. */
	return ftruncate(fd, size) < 0 ? err_set(err, -errno, "give it its length: %m") : 0;
}

static int make_file(struct unpack *u, struct archive_entry *entry, int folder, const char *name,
	struct err *err)
{
	la_int64_t size = archive_entry_size(entry);
	scoped_fd int fd = -1;
	int r;

	if (size < 0 || (uint64_t)size > u->limits->bytes - u->claimed)
		return too_big(u, err);
	u->claimed += (uint64_t)size;
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, -errno, "make it: %m");
	r = write_data(u, fd, size, err);
	return r < 0 ? r : unpack_owner_set(u, entry, fd, err);
}

static void set_late(struct unpack *u, struct archive_entry *entry, const struct unpack_path *path)
{
	if (u->n_late == u->cap_late) {
		u->cap_late += LATE_STEP + u->cap_late / 2;
		u->late = mem_grow(u->late, u->cap_late, sizeof(*u->late));
	}
	u->late[u->n_late++] = (struct unpack_late){
		.path = mem_dup(path->len ? path->text : "."), .time = unpack_owner_time(entry)};
}

static int make_folder(struct unpack *u, struct archive_entry *entry, int folder,
	const struct unpack_path *path, struct err *err)
{
	const char *name = path->len ? path->name : ".";
	scoped_fd int fd = -1;

	if (mkdirat(folder, name, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make it: %m");
	fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "open it: %m");
	set_late(u, entry, path);
	return unpack_owner_set(u, entry, fd, err);
}

/* The owner and the time of something that is not opened. */
static int set_plain(struct archive_entry *entry, int folder, const char *name, struct err *err)
{
	const struct timespec times[] = {unpack_owner_time(entry), unpack_owner_time(entry)};

	if (fchownat(folder, name, (uid_t)archive_entry_uid(entry), (gid_t)archive_entry_gid(entry),
		    AT_SYMLINK_NOFOLLOW) < 0 ||
		utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, -errno, "set its owner and time: %m");
	return 0;
}

static int make_link(struct archive_entry *entry, int folder, const char *name, struct err *err)
{
	const char *target = archive_entry_symlink(entry);

	if (!target || symlinkat(target, folder, name) < 0)
		return err_set(err, target ? -errno : -EBADMSG, "make the link: %m");
	return set_plain(entry, folder, name, err);
}

static int make_pipe(struct archive_entry *entry, int folder, const char *name, struct err *err)
{
	if (mknodat(folder, name, S_IFIFO | (archive_entry_perm(entry) & 0777), 0) < 0)
		return err_set(err, -errno, "make the pipe: %m");
	return set_plain(entry, folder, name, err);
}

/* To a file that came before in the same archive, wherever its name seems to lead. */
static int make_hard_link(
	struct unpack *u, const char *target, const struct unpack_path *path, struct err *err)
{
	struct unpack_place from = {.root = u->place.root, .folder = -1};
	struct unpack_path clean;
	struct stat st;
	int folder, source, r = unpack_path_set(&clean, target, err);

	if (r < 0)
		return err_wrap(err, r, "its target '%.200s'", target);
	if (clean.len == path->len && memcmp(clean.text, path->text, clean.len) == 0)
		return 0;
	source = unpack_place_above(&from, &clean);
	if (source < 0 || fstatat(source, clean.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = err_set(err, -ENOENT,
			"it is a hard link to '%.200s', which is not in the archive", target);
	folder = r < 0 ? r : unpack_place_above(&u->place, path);
	if (r == 0)
		r = clear(u, folder, path->name, false, err);
	if (r == 0 && linkat(source, clean.name, folder, path->name, 0) < 0)
		r = err_set(err, -errno, "link it to '%.200s': %m", target);
	unpack_place_forget(&from);
	return r;
}

int unpack_entry_make(struct unpack *u, struct archive_entry *entry, const struct unpack_path *path,
	struct err *err)
{
	mode_t type = archive_entry_filetype(entry);
	const char *target = archive_entry_hardlink(entry);
	int folder, r;

	if (target && path->len)
		return make_hard_link(u, target, path, err);
	if (type == S_IFCHR || type == S_IFBLK || type == S_IFSOCK) {
		u->n_devices++;
		return 0;
	}
	if (path->len == 0 && type != S_IFDIR)
		return err_set(err, -EBADMSG, "it is the root and no folder");
	r = unpack_owner_check(u, entry, err);
	if (r < 0)
		return r;
	folder = unpack_place_above(&u->place, path);
	if (folder < 0)
		return err_set(err, folder, "make the folder for it: %m");
	r = path->len ? clear(u, folder, path->name, type == S_IFDIR, err) : 0;
	if (r < 0)
		return r;
	if (type == S_IFDIR)
		return make_folder(u, entry, folder, path, err);
	if (type == S_IFLNK)
		return make_link(entry, folder, path->name, err);
	if (type == S_IFIFO)
		return make_pipe(entry, folder, path->name, err);
	if (type == S_IFREG)
		return make_file(u, entry, folder, path->name, err);
	return err_set(err, -EBADMSG, "it is of a kind that no tar has");
}
