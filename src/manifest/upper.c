/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/upper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "manifest/content.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define MARK "trusted.overlay."

/* struct ovl_fb of fs/overlayfs/overlayfs.h: what trusted.overlay.origin holds. */
struct origin_mark {
	uint8_t version, magic, len, flags, type, uuid[16];
	uint8_t handle[UPPER_ORIGIN_MAX];
} __attribute__((packed));
#define ORIGIN_MAGIC 0xfb
#define ORIGIN_HEAD  offsetof(struct origin_mark, handle)

/* Its length, 0 where there is none. An error says nothing of that. */
static ssize_t get_mark(int fd, const char *name, void *value, size_t size)
{
	ssize_t n = fgetxattr(fd, name, value, size);

	if (n >= 0)
		return n;
	return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
}

/* Empty ones are marks, too. */
static int has_mark(int fd, const char *name)
{
	if (fgetxattr(fd, name, NULL, 0) >= 0)
		return 1;
	return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
}

int upper_lacks_data(int fd)
{
	return has_mark(fd, MARK "metacopy");
}

/* Over a folder: 'y' nothing below it shows, 'x' it may hold whiteouts with marks, 0 neither. */
static int read_opaque(int fd)
{
	char value[2];
	ssize_t n = get_mark(fd, MARK "opaque", value, sizeof(value));

	if (n == -ERANGE)
		return 0;
	return n < 0 ? (int)n : n == 1 ? value[0] : 0;
}

static int read_redirect(int fd, char **ret)
{
	char text[UPPER_REDIRECT_MAX + 1];
	ssize_t n = get_mark(fd, MARK "redirect", text, UPPER_REDIRECT_MAX);

	if (n <= 0)
		return (int)n;
	if (memchr(text, '\0', (size_t)n))
		return -EBADMSG;
	*ret = mem_copy(text, (size_t)n);
	return 0;
}

static void take_origin(const struct origin_mark *mark, ssize_t n, struct upper_entry *e)
{
	size_t len;

	if (n <= (ssize_t)ORIGIN_HEAD || mark->version != 0 || mark->magic != ORIGIN_MAGIC ||
		mark->len != n)
		return;
	len = (size_t)n - ORIGIN_HEAD;
	if (len + 1 > sizeof(e->origin))
		return;
	e->origin[0] = mark->type;
	memcpy(e->origin + 1, mark->handle, len);
	e->origin_len = len + 1;
}

static int read_origin(int fd, struct upper_entry *e)
{
	struct origin_mark mark;
	ssize_t n = get_mark(fd, MARK "origin", &mark, sizeof(mark));

	take_origin(&mark, n, e);
	return n < 0 && n != -ERANGE ? (int)n : 0;
}

static void read_link_origin(int dirfd, const char *name, struct upper_entry *e)
{
	struct origin_mark mark;
	scoped_mem char *path = mem_printf("/proc/self/fd/%d/%s", dirfd, name);

	take_origin(&mark, lgetxattr(path, MARK "origin", &mark, sizeof(mark)), e);
}

int upper_read_dir(int fd, struct upper_entry *ret_entry)
{
	int opaque = read_opaque(fd);

	*ret_entry = (struct upper_entry){.opaque = opaque == 'y', .has_xwhiteouts = opaque == 'x'};
	if (opaque < 0)
		return opaque;
	if (fstat(fd, &ret_entry->st) < 0)
		return -errno;
	opaque = read_origin(fd, ret_entry);
	/* An opaque folder is not looked up below, whatever its redirect says. */
	return ret_entry->opaque || opaque < 0 ? opaque : read_redirect(fd, &ret_entry->redirect);
}

static int read_whiteout(int fd, struct upper_entry *e)
{
	int r = e->st.st_size == 0 ? has_mark(fd, MARK "whiteout") : 0;

	e->whiteout = r > 0;
	return r < 0 ? r : 0;
}

static int read_file(int fd, bool in_xwhiteouts, struct upper_entry *e)
{
	int r;

	if (fstat(fd, &e->st) < 0)
		return -errno;
	r = upper_lacks_data(fd);
	e->metacopy = r > 0;
	if (r > 0)
		r = read_redirect(fd, &e->redirect);
	if (r >= 0 && in_xwhiteouts)
		r = read_whiteout(fd, e);
	return r < 0 ? r : read_origin(fd, e);
}

int upper_read(int dirfd, const char *name, bool in_xwhiteouts, struct upper_entry *ret_entry)
{
	struct stat st;
	scoped_fd int fd = -1;
	int r;

	*ret_entry = (struct upper_entry){0};
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	ret_entry->st = st;
	if (S_ISCHR(st.st_mode)) {
		ret_entry->whiteout = st.st_rdev == makedev(0, 0);
		return 0;
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		read_link_origin(dirfd, name, ret_entry);
		return 0;
	}
	/* Not blocking: a live sandbox may put a pipe in the file's place between the two calls. */
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = S_ISDIR(st.st_mode) ? upper_read_dir(fd, ret_entry)
	                        : read_file(fd, in_xwhiteouts, ret_entry);
	if (r < 0)
		upper_done(ret_entry);
	return r;
}

void upper_done(struct upper_entry *entry)
{
	free(entry->redirect);
	entry->redirect = NULL;
}

struct handle_room {
	struct file_handle head;
	unsigned char bytes[UPPER_ORIGIN_MAX];
};

size_t upper_handle(int dirfd, const char *name, unsigned char ret[UPPER_ORIGIN_MAX])
{
	struct handle_room room = {.head.handle_bytes = MAX_HANDLE_SZ};
	int mount_id;

	if (name_to_handle_at(dirfd, name, &room.head, &mount_id, AT_EMPTY_PATH) < 0)
		return 0;
	ret[0] = (unsigned char)room.head.handle_type;
	memcpy(ret + 1, room.head.f_handle, room.head.handle_bytes);
	return room.head.handle_bytes + 1;
}

bool upper_handle_is_alive(int fd, const unsigned char *handle, size_t len)
{
	struct handle_room room = {0};
	struct stat st;
	scoped_fd int got = -1;

	if (len < 2 || len > UPPER_ORIGIN_MAX)
		return true;
	room.head.handle_type = handle[0];
	room.head.handle_bytes = (unsigned)(len - 1);
	memcpy(room.head.f_handle, handle + 1, len - 1);
	got = open_by_handle_at(fd, &room.head, O_PATH | O_CLOEXEC);
	if (got < 0)
		return errno != ESTALE;
	/* A live overlay holds on to what the host has removed. */
	return fstat(got, &st) < 0 || st.st_nlink > 0;
}

bool upper_follow_origin(int fd, struct upper_entry *e)
{
	struct handle_room room = {0};
	struct upper_entry below = {0};
	scoped_fd int got = -1;

	room.head.handle_type = e->origin[0];
	room.head.handle_bytes = (unsigned)(e->origin_len - 1);
	memcpy(room.head.f_handle, e->origin + 1, e->origin_len - 1);
	got = open_by_handle_at(
		fd, &room.head, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (got < 0)
		return false;
	if (read_origin(got, &below) < 0)
		return false;
	/* A copy of a file with several names: overlayfs leaves no mark of where it is from. */
	if (below.origin_len == 0 && upper_lacks_data(got) > 0) {
		e->origin_len = 0;
		return true;
	}
	if (below.origin_len == 0)
		return false;
	memcpy(e->origin, below.origin, below.origin_len);
	e->origin_len = below.origin_len;
	return true;
}

/* overlayfs keeps none for a file that had several names, and once it is whole nothing else says what it was. The mark
 * names no filesystem, so overlayfs makes nothing of it. */
static int keep_origin(int fd, int data_fd)
{
	struct origin_mark mark = {.magic = ORIGIN_MAGIC};
	unsigned char handle[UPPER_ORIGIN_MAX];
	size_t len = upper_handle(data_fd, "", handle);
	int r = has_mark(fd, MARK "origin");

	if (r != 0 || len < 2)
		return r < 0 ? r : 0;
	mark.type = handle[0];
	memcpy(mark.handle, handle + 1, len - 1);
	mark.len = (uint8_t)(ORIGIN_HEAD + len - 1);
	return fsetxattr(fd, MARK "origin", &mark, mark.len, 0) < 0 ? -errno : 0;
}

int upper_make_whole(int fd, int data_fd)
{
	int r;

	if (fgetxattr(fd, MARK "metacopy", NULL, 0) < 0)
		return errno == ENODATA ? 0 : -errno; /* by another of its names */
	r = content_copy(data_fd, fd);
	if (r == 0)
		r = keep_origin(fd, data_fd);
	if (r < 0)
		return r;
	/* The mark goes last: until then the file is what it was. */
	if (fsync(fd) < 0 || fremovexattr(fd, MARK "metacopy") < 0 || fsync(fd) < 0)
		return -errno;
	(void)fremovexattr(fd, MARK "redirect"); /* without the other it says nothing */
	return 0;
}
