/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/layers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/rest.h"
#include "launcher/launch.h"
#include "manifest/change_set.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

#define NAMES_MAX (1u << 20)

int layers_lock(const char *state_dir, bool is_exclusive, struct err *err)
{
	scoped_mem char *dir = mem_printf("%s/layers", state_dir);
	scoped_mem char *path = mem_printf("%s/lock", dir);
	scoped_fd int fd = -1;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make '%s': %m", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, is_exclusive ? LOCK_EX : LOCK_SH) < 0)
		return err_set(err, -errno, "lock '%s': %m", path);
	return take_fd(&fd);
}

/* ---- what is named ---- */

/* "<state>/layers/NAME/fs": the name, or nothing for what lies elsewhere. */
static struct slice name_of(const char *dir)
{
	const char *end = strrchr(dir, '/'), *start = end;

	while (start && start > dir && start[-1] != '/')
		start--;
	return start ? (struct slice){.p = start, .len = (size_t)(end - start)} : (struct slice){0};
}

static void name_dir(struct map *named, const char *dir)
{
	struct slice name = name_of(dir);

	if (name.len > 0)
		*map_slot(named, name) = named;
}

static int take_rest(struct map *named, const char *folder, struct err *err)
{
	scoped(rest) struct rest *rest = NULL;
	int r = rest_read(folder, &rest, err);

	for (size_t i = 0; r == 0 && i < rest->spec->n_lowers; i++)
		name_dir(named, rest->spec->lowers[i].dir);
	return r == -ENOENT ? 0 : r;
}

static int take_list(struct map *named, const char *folder, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/" LAUNCH_LAYERS, folder);
	scoped_str struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, path, NAMES_MAX, &text);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(err, r, "read '%s': %m", path);
	for (size_t at = 0; at < text.len;) {
		const char *line = text.p + at;
		size_t len = strcspn(line, "\n");

		*map_slot(named, (struct slice){.p = line, .len = len}) = named;
		at += len + 1;
	}
	return 0;
}

static int take_set(struct map *named, const char *folder, struct err *err)
{
	scoped(change_set) struct change_set *set = NULL;
	int r = change_set_open(folder, &set, err);

	/* Not written yet: then a sandbox that is being made names them. */
	if (r == -ENOENT)
		return 0;
	for (size_t i = 0; r == 0 && i < set->n_layers; i++)
		for (size_t k = 0; k < set->layers[i].n_stack; k++)
			name_dir(named, set->layers[i].stack[k].dir);
	return r;
}

/* What cannot be read may name any: then nothing is removed. */
static int each_folder(const char *state_dir, const char *kind, struct map *named,
	int (*take_one)(struct map *named, const char *folder, struct err *err), struct err *err)
{
	scoped_mem char *path = mem_printf("%s/%s", state_dir, kind);
	DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_set(err, -errno, "open '%s': %m", path);
	while (r == 0 && (errno = 0, e = readdir(dir))) {
		scoped_mem char *folder = mem_printf("%s/%s", path, e->d_name);

		if (id_is_valid("sb", e->d_name))
			r = take_one(named, folder, err);
	}
	if (r == 0 && errno)
		r = err_set(err, -errno, "read '%s': %m", path);
	(void)closedir(dir);
	return r;
}

static void name_layer(void *ctx, struct slice name)
{
	*map_slot(ctx, name) = ctx;
}

static int find_named(const char *state_dir, struct map *named, struct err *err)
{
	int r = image_refs_each_layer(state_dir, name_layer, named, err);

	if (r == 0)
		r = each_folder(state_dir, "sandboxes", named, take_list, err);
	if (r == 0)
		r = each_folder(state_dir, "sandboxes", named, take_rest, err);
	return r < 0 ? r : each_folder(state_dir, "changes", named, take_set, err);
}

/* ---- what is not ---- */

/* "sb_....1" of a sandbox, "sha256-..." of an image; what is being made has another name. */
static bool is_layer(const char *name)
{
	const char *dot = strrchr(name, '.');
	scoped_mem char *id = dot ? mem_copy(name, (size_t)(dot - name)) : NULL;

	return id ? id_is_valid("sb", id) : slice_starts(slice_of(name), "sha256-");
}

/* Under the name of what is half made first: who is cut off on the way leaves nothing that passes for a layer. Such a
 * rest of before would stand in the way. */
static bool remove_layer(int dirfd, const char *name)
{
	scoped_mem char *gone = mem_printf(".tmp-gone-%s", name);

	(void)path_remove_all(dirfd, gone); /* where it stays, the rename says so */
	return renameat(dirfd, name, dirfd, gone) == 0 && path_remove_all(dirfd, gone) == 0;
}

static int remove_unnamed(const char *state_dir, const struct map *named)
{
	scoped_mem char *path = mem_printf("%s/layers", state_dir);
	DIR *dir = opendir(path);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir)))
		if (is_layer(e->d_name) && !map_find(named, slice_of(e->d_name)))
			n += remove_layer(dirfd(dir), e->d_name); /* else the next time */
	if (dir)
		(void)closedir(dir);
	return n;
}

int layers_collect(const char *state_dir, const struct image_refs_limits *limits,
	struct layers_collected *ret, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/layers", state_dir);
	scoped(map) struct map *named = map_new();
	scoped_fd int lock = -1;
	int r;

	*ret = (struct layers_collected){0};
	if (access(path, F_OK) < 0)
		return 0;
	lock = layers_lock(state_dir, true, err);
	if (lock < 0)
		return lock;
	r = image_refs_drop(state_dir, limits, err);
	if (r < 0)
		return r;
	ret->images = r;
	r = find_named(state_dir, named, err);
	if (r < 0)
		return err_wrap(err, r, "find out which layers are used");
	ret->layers = remove_unnamed(state_dir, named);
	return 0;
}
