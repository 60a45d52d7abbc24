/* SPDX-License-Identifier: Apache-2.0 */
#include "image/whiteout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "image/parcel.h"
#include "util/scoped.h"

/* Empty: the kernel then leaves whiteouts out of a folder's list also where no layer below has that folder. */
#define ORIGIN "trusted.overlay.origin"

/* What the kernel takes as a path in one piece. */
static int copy_path(struct slice path, char ret[PATH_MAX])
{
	if (path.len >= PATH_MAX || (path.len && memchr(path.p, '\0', path.len)))
		return -EBADMSG;
	if (path.len)
		memcpy(ret, path.p, path.len);
	ret[path.len] = '\0';
	return 0;
}

int whiteout_split(struct slice path, struct slice *ret_folder, struct slice *ret_name)
{
	const char *slash = path.len ? memrchr(path.p, '/', path.len) : NULL;
	size_t at = slash ? (size_t)(slash - path.p) + 1 : 0;
	struct slice name = {.p = path.p + at, .len = path.len - at};

	if (path.len == 0 || name.len == 0 || name.len > NAME_MAX || slice_is(name, ".") ||
		slice_is(name, "..") || memchr(name.p, '\0', name.len))
		return -EBADMSG;
	*ret_folder = (struct slice){.p = path.p, .len = slash ? at - 1 : 0};
	*ret_name = name;
	return 0;
}

static int open_folder(int fs_fd, struct slice path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
	char text[PATH_MAX];
	int fd, r = copy_path(path, text);

	if (r < 0)
		return r;
	fd = (int)syscall(SYS_openat2, fs_fd, path.len ? text : ".", &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int make_opaque(int fs_fd, struct slice path)
{
	scoped_fd int fd = open_folder(fs_fd, path);

	if (fd < 0)
		return fd;
	return fsetxattr(fd, WHITEOUT_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

/* What the layer has itself hides what is below anyway; of a folder all of it has to be hidden. */
static int hide_below(int fs_fd, int folder, const char *name, struct slice path)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? make_opaque(fs_fd, path) : 0;
}

/* The archive said when the folder was changed last; the mark in it is none of that. */
static int keep_time(int folder, const struct stat *st)
{
	const struct timespec times[] = {st->st_atim, st->st_mtim};

	return futimens(folder, times) < 0 ? -errno : 0;
}

static int make_whiteout(int fs_fd, uint32_t owner, struct slice path)
{
	struct slice above, last;
	scoped_fd int folder = -1;
	char name[PATH_MAX];
	struct stat st;
	int r = whiteout_split(path, &above, &last);

	if (r == 0)
		r = copy_path(last, name);
	if (r < 0)
		return r;
	folder = open_folder(fs_fd, above);
	if (folder < 0)
		return folder;
	if (fstat(folder, &st) < 0)
		return -errno;
	if (mknodat(folder, name, S_IFCHR | 0, makedev(0, 0)) < 0)
		return errno == EEXIST ? hide_below(fs_fd, folder, name, path) : -errno;
	if (fsetxattr(folder, ORIGIN, "", 0, 0) < 0 ||
		fchownat(folder, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return keep_time(folder, &st);
}

static int put_one(
	int fs_fd, uint32_t owner, int type, struct slice text, struct whiteout_counts *counts)
{
	switch (type) {
	case PARCEL_WHITEOUT:
		return make_whiteout(fs_fd, owner, text);
	case PARCEL_OPAQUE:
		return make_opaque(fs_fd, text);
	case PARCEL_DEVICES:
		return parcel_count(text, &counts->n_devices);
	case PARCEL_XATTRS:
		return parcel_count(text, &counts->n_xattrs);
	case PARCEL_ENTRIES:
		return parcel_count(text, &counts->n_entries);
	case PARCEL_STRANGERS:
		return parcel_count(text, &counts->n_strangers);
	default:
		return -EBADMSG;
	}
}

int whiteout_put_all(int fs_fd, uint32_t owner, struct slice report,
	struct whiteout_counts *ret_counts, struct err *err)
{
	struct whiteout_counts counts = {0};
	struct slice text;
	int type, r;

	while ((r = parcel_next(&report, &type, &text)) == 1) {
		r = put_one(fs_fd, owner, type, text, &counts);
		if (r < 0)
			return err_set(err, r, "hide what '%.*s' of the layer is to hide: %m",
				(int)(text.len < 200 ? text.len : 200), text.p);
	}
	if (r < 0)
		return err_set(err, r, "what the child that unpacks says is damaged");
	*ret_counts = counts;
	return 0;
}
