/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/unpack_internal.h"
#include "util/scoped.h"

#define FOLDER_MODE 0755 /* of one that the archive does not have itself */

static int open_folder(int root, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = resolve};
	int fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* One of a path; above is let go. */
static int make_folder(
	struct unpack_place *place, int above, const char *name, const char *path, uint64_t resolve)
{
	int r = mkdirat(above, name, FOLDER_MODE) < 0 ? -errno : 0;

	(void)close(above);
	if (r < 0 && r != -EEXIST)
		return r;
	place->n_made += r == 0;
	return open_folder(place->root, path, resolve);
}

/* The folder that the first len bytes of path name; those that are missing are made from the top down. */
static int open_or_make(struct unpack_place *place, const char *path, size_t len, uint64_t resolve)
{
	char part[PATH_MAX];
	int fd;

	memcpy(part, path, len);
	part[len] = '\0';
	fd = open_folder(place->root, part, resolve);
	if (fd != -ENOENT)
		return fd;
	for (size_t i = 0, from = 0; i <= len; i++) {
		if (i < len && part[i] != '/')
			continue;
		part[i] = '\0';
		fd = make_folder(place, from == 0 ? open_folder(place->root, ".", resolve) : fd,
			part + from, part, resolve);
		if (fd < 0 || i == len)
			return fd;
		part[i] = '/';
		from = i + 1;
	}
	return fd;
}

void unpack_place_forget(struct unpack_place *place)
{
	scoped_close(&place->folder);
	place->folder = -1;
}

static size_t len_above(const struct unpack_path *path)
{
	size_t len = (size_t)(path->name - path->text);

	return len > 0 ? len - 1 : 0;
}

int unpack_place_above(struct unpack_place *place, const struct unpack_path *path)
{
	const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
	size_t len = len_above(path);

	if (place->folder >= 0 && place->len == len && memcmp(place->path, path->text, len) == 0)
		return place->folder;
	unpack_place_forget(place);
	place->folder = open_or_make(place, path->text, len, resolve);
	memcpy(place->path, path->text, len);
	place->len = len;
	return place->folder;
}

int unpack_place_plain(struct unpack_place *place, const struct unpack_path *path)
{
	const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
	int fd = open_or_make(place, path->text, len_above(path), resolve);

	if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? fd : 0;
}
