/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/lower.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "manifest/merged.h"
#include "util/fdio.h"
#include "util/path.h"
#include "util/scoped.h"
#include "util/str.h"

#define MOUNTINFO_MAX (8 << 20)
#define MOUNT_POINT   4 /* its field in mountinfo, from 0: proc(5) */

/* Undoes mountinfo's octal escapes. */
static void add_decoded(struct str *out, struct slice field)
{
	for (size_t i = 0; i < field.len; i++) {
		const char *p = field.p + i;

		if (*p == '\\' && field.len - i > 3) {
			str_putc(out, (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + p[3] - '0'));
			i += 3;
		} else {
			str_putc(out, *p);
		}
	}
}

static struct slice find_mount_point(struct slice line)
{
	size_t at = 0, len = 0;

	for (int field = 0; field < MOUNT_POINT; field++) {
		while (at < line.len && line.p[at] != ' ')
			at++;
		at++;
	}
	while (at + len < line.len && line.p[at + len] != ' ')
		len++;
	return (struct slice){.p = line.p + at, .len = at < line.len ? len : 0};
}

/* True also where it cannot be told. */
static bool has_mounts(const char *path)
{
	scoped_str struct str text = {0}, point = {0};

	if (fdio_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text) < 0)
		return true;
	for (const char *line = text.p; line && *line;) {
		size_t len = strcspn(line, "\n");

		str_reset(&point);
		add_decoded(&point, find_mount_point((struct slice){.p = line, .len = len}));
		if (point.len > strlen(path) && path_is_beneath(str_slice(&point), slice_of(path)))
			return true;
		line += len + (line[len] == '\n');
	}
	return false;
}

/* A private copy of the one mount that the folder lies in, without those below. */
static int clone_mount(int fd)
{
	scoped_fd int tree = (int)syscall(
		SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	int clone;

	if (tree < 0)
		return -errno;
	clone = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return clone < 0 ? -errno : clone;
}

int lower_open(const char *path)
{
	scoped_fd int fd = path_open_judged(path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	/* Letting go of a copy costs milliseconds (the kernel waits for its readers): only where it is needed. */
	return has_mounts(path) ? clone_mount(fd) : take_fd(&fd);
}

int lower_open_layer(const struct change_layer *layer)
{
	return layer->lower ? lower_open(layer->lower)
	                    : merged_open_shared(layer->stack + layer->n_stack, layer->n_below);
}
