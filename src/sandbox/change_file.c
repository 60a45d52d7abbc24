/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/change_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/scoped.h"

#define NAME     "changes.json"
#define NEW_NAME ".changes.json.new"

/* The root's own layers; their ids are the sandbox's own. */
static void write_root(struct jsonw *j, const struct change_file *file)
{
	for (size_t i = 0; i < file->rootfs->n_layers; i++) {
		const struct rootfs_layer *layer = &file->rootfs->layers[i];
		scoped_mem char *upper = mem_printf("%s/%supper", file->dir, layer->prefix);

		jsonw_object(j);
		jsonw_ktext(j, "guest", layer->guest);
		if (layer->lower)
			jsonw_ktext(j, "lower", layer->lower);
		lowers_write(file->lowers, layer->guest, j);
		jsonw_ktext(j, "upper", upper);
		jsonw_object_end(j);
	}
}

static void format(const struct change_file *file, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kint(&j, "v", 1);
	jsonw_ktext(&j, "sandbox", file->id);
	jsonw_kint(&j, "base", file->base);
	jsonw_kint(&j, "created_ns", file->created_ns);
	jsonw_key(&j, "mounts");
	jsonw_array(&j);
	mounts_write_changes(file->mounts, file->lowers, &j);
	jsonw_array_end(&j);
	jsonw_key(&j, "root");
	jsonw_array(&j);
	write_root(&j, file);
	jsonw_array_end(&j);
	jsonw_key(&j, "rw");
	jsonw_array(&j);
	mounts_write_rw(file->mounts, &j);
	jsonw_array_end(&j);
	jsonw_object_end(&j);
	str_putc(out, '\n');
}

static int put(int dirfd, const struct str *text)
{
	scoped_fd int fd = openat(
		dirfd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : fdio_write_all(fd, text->p, text->len);

	if (r < 0)
		return r;
	(void)sync_file_range(
		fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* where it cannot, the kernel does it later */
	return renameat(dirfd, NEW_NAME, dirfd, NAME) < 0 ? -errno : 0;
}

int change_file_write(const struct change_file *file, const char *changes_dir, struct err *err)
{
	scoped_fd int dirfd = open(changes_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_str struct str text = {0};
	int r;

	format(file, &text);
	r = dirfd < 0 ? -errno : put(dirfd, &text);
	return r < 0 ? err_set(err, r, "write '%s/" NAME "': %m", changes_dir) : 0;
}
