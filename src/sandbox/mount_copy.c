/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/mount_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/kmount.h"
#include "sandbox/treecopy.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

bool mount_copy_is_needed(const char *path, int userns_fd)
{
	scoped_fd int fd = kmount_clone(path, MOUNT_ATTR_RDONLY, userns_fd, NULL);

	return fd == -EINVAL;
}

static int copy_folder(const char *source, const char *to, struct treecopy *copy, struct err *err)
{
	if (mkdir(to, 0700) < 0)
		return err_set(err, -errno, "make folder '%s': %m", to);
	return treecopy_run(copy, source, to, err);
}

int mount_copy_make(const char *source, bool is_folder, const char *dir, size_t number,
	struct mount_copy *ret_copy, struct err *err)
{
	struct treecopy copy = {.is_whole = true,
		.max_entries = MOUNT_COPY_MAX_ENTRIES,
		.max_bytes = MOUNT_COPY_MAX_BYTES};
	scoped_mem char *name = mem_printf("%zu", number);
	scoped_mem char *to = mem_printf("%s/%s", dir, name);
	int r = path_make_all(dir, 0700);

	if (r == 0)
		r = path_remove_all(AT_FDCWD, to); /* of before it was suspended */
	if (r < 0)
		return err_set(err, r, "make folder '%s': %m", dir);
	r = is_folder ? copy_folder(source, to, &copy, err)
	              : treecopy_file(&copy, source, dir, name, err);
	if (r == -E2BIG)
		return err_set(err, r,
			"mount of '%s': it lies on a filesystem whose ids cannot be mapped, so "
			"that a "
			"copy would be mounted, and is too large for one (over %llu GiB or %d "
			"entries): mount a folder in it, or move it to a local disk filesystem",
			source, MOUNT_COPY_MAX_BYTES >> 30, MOUNT_COPY_MAX_ENTRIES);
	if (r < 0)
		return r;
	*ret_copy = (struct mount_copy){
		.path = take(&to), .n_entries = copy.n_entries, .n_bytes = copy.n_bytes};
	return 0;
}
