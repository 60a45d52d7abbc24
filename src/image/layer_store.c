/* SPDX-License-Identifier: Apache-2.0 */
#include "image/layer_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/idrange.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define TEMP  ".tmp-"
#define TRIES 64

int layer_store_open(struct layer_store *store, const char *state_dir, struct err *err)
{
	int r;

	*store = (struct layer_store){.fd = -1, .path = mem_printf("%s/layers", state_dir)};
	r = path_make_all(store->path, 0700);
	if (r < 0)
		return err_set(err, r, "make '%s': %m", store->path);
	store->fd = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->fd < 0)
		return err_set(err, -errno, "open '%s': %m", store->path);
	return idrange_for_layers(state_dir, &store->base, err);
}

void layer_store_done(struct layer_store *store)
{
	scoped_close(&store->fd);
	free(store->path);
	*store = (struct layer_store){.fd = -1};
}

int layer_store_has(const struct layer_store *store, const char *name)
{
	scoped_mem char *path = mem_printf("%s/layer.json", name);

	return faccessat(store->fd, path, F_OK, 0) == 0;
}

static int lock_folder(int at, const char *name, int how)
{
	scoped_fd int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat ours, there;

	if (fd < 0)
		return -errno;
	if (flock(fd, how) < 0)
		return -errno;
	/* Whoever held it may have made a layer of it, or removed it. */
	if (fstat(fd, &ours) < 0 || fstatat(at, name, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
		return -ESTALE;
	return take_fd(&fd);
}

void layer_store_clean(const struct layer_store *store)
{
	scoped_fd int fd = openat(store->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return;
	(void)take_fd(&fd); /* dir has it */
	while ((entry = readdir(dir))) {
		scoped_fd int lock = -1;

		if (strncmp(entry->d_name, TEMP, strlen(TEMP)) != 0)
			continue;
		lock = lock_folder(store->fd, entry->d_name, LOCK_EX | LOCK_NB);
		if (lock >= 0)
			(void)path_remove_all(
				store->fd, entry->d_name); /* else the next one does */
	}
	(void)closedir(dir);
}

/* Locked, and empty whatever a killed one left in it. */
static int open_temp(const struct layer_store *store, const char *temp)
{
	int fd;

	if (mkdirat(store->fd, temp, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = lock_folder(store->fd, temp, LOCK_EX);
	if (fd >= 0)
		(void)path_remove_all(fd, "fs");
	return fd;
}

static int make_fs(struct layer_temp *t)
{
	uint32_t base = t->store->base;

	if (mkdirat(t->dir_fd, "fs", 0755) < 0)
		return -errno;
	t->fs_fd = openat(t->dir_fd, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->fs_fd < 0 || fchown(t->fs_fd, base, base) < 0 || fchmod(t->fs_fd, 0755) < 0)
		return -errno;
	return 0;
}

int layer_store_begin(const struct layer_store *store, const char *name,
	struct layer_temp *ret_temp, struct err *err)
{
	scoped_mem char *temp = mem_printf(TEMP "%s", name);
	int fd = -ESTALE, r;

	for (int i = 0; i < TRIES && (fd == -ESTALE || fd == -ENOENT); i++) {
		if (layer_store_has(store, name))
			return 0;
		fd = open_temp(store, temp);
	}
	if (fd < 0)
		return err_set(err, fd, "make '%s/%s': %m", store->path, temp);
	*ret_temp = (struct layer_temp){.store = store,
		.name = mem_dup(name),
		.dir_fd = fd,
		.fs_fd = -1,
		.path = mem_printf("%s/%s/fs", store->path, temp)};
	r = layer_store_has(store, name) ? 0 : 1;
	if (r == 1)
		r = make_fs(ret_temp) < 0 ? err_set(err, -errno, "make '%s': %m", ret_temp->path)
		                          : 1;
	if (r <= 0)
		layer_store_drop(ret_temp);
	return r;
}

static int write_about(const struct layer_temp *t, const char *name)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	jsonw_object(&j);
	jsonw_kint(&j, "v", 1);
	jsonw_ktext(&j, "kind", "image");
	jsonw_kint(&j, "base", t->store->base);
	jsonw_kint(&j, "created_ns", clock_wall_ms() * CLOCK_NS_PER_MS);
	jsonw_ktext(&j, "of", name);
	jsonw_kint(&j, "bytes", (int64_t)t->bytes);
	jsonw_object_end(&j);
	str_putc(&text, '\n');
	return fdio_replace(t->dir_fd, "layer.json", text.p, text.len, 0600);
}

int layer_store_finish(struct layer_temp *t, const char *name, struct err *err)
{
	scoped_mem char *temp = mem_printf(TEMP "%s", t->name);
	int r = syncfs(t->fs_fd) < 0 ? -errno : write_about(t, name);

	if (r == 0 && renameat(t->store->fd, temp, t->store->fd, name) < 0)
		r = errno == EEXIST || errno == ENOTEMPTY ? 1 : -errno;
	if (r == 0 && fsync(t->store->fd) < 0)
		r = -errno;
	if (r < 0)
		r = err_set(err, r, "keep '%s/%s': %m", t->store->path, name);
	if (r == 0) { /* it has another name now */
		free(t->name);
		t->name = NULL;
	}
	layer_store_drop(t);
	return r < 0 ? r : 0;
}

void layer_store_drop(struct layer_temp *t)
{
	if (t->name) {
		scoped_mem char *temp = mem_printf(TEMP "%s", t->name);

		(void)path_remove_all(
			t->store->fd, temp); /* what stays is found by its free lock */
	}
	scoped_close(&t->fs_fd);
	scoped_close(&t->dir_fd);
	free(t->name);
	free(t->path);
	*t = LAYER_TEMP_NONE;
}
