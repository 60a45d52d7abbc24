/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/image_refs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fdio.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define FILE_MAX   (32u << 20)
#define ABOUT_MAX  (1u << 20)
#define MS_PER_SEC 1000

struct ref {
	char *file; /* in <state>/images */
	int64_t used_ms;
	json_t *root;
};

struct refs {
	struct ref *items; /* what was used last comes first */
	size_t n;
};

static void refs_done(struct refs *refs)
{
	for (size_t i = 0; i < refs->n; i++) {
		free(refs->items[i].file);
		json_decref(refs->items[i].root);
	}
	free(refs->items);
	*refs = (struct refs){0};
}

static int by_use(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	return (y->used_ms > x->used_ms) - (y->used_ms < x->used_ms);
}

static const json_t *layers_of(const struct ref *ref)
{
	return json_object_get(ref->root, "layers");
}

static int read_one(int dirfd, const char *file, struct refs *refs, struct err *err)
{
	scoped_str struct str text = {0};
	struct ref ref = {0};
	struct stat st;
	int r = fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

	if (r == 0)
		r = fdio_read_file(dirfd, file, FILE_MAX, &text);
	if (r < 0)
		return err_set(err, r, "read 'images/%s': %m", file);
	ref.root = json_loadb(text.p, text.len, 0, NULL);
	if (!json_is_array(layers_of(&ref))) {
		json_decref(ref.root);
		return err_set(err, -EBADMSG,
			"'images/%s' is damaged: remove it, the image is read anew when it is "
			"wanted",
			file);
	}
	ref.file = mem_dup(file);
	ref.used_ms = (int64_t)st.st_mtim.tv_sec * MS_PER_SEC;
	refs->items = mem_grow(refs->items, refs->n + 1, sizeof(*refs->items));
	refs->items[refs->n++] = ref;
	return 0;
}

/* Names that begin with a dot are files that are being written. */
static int read_all(const char *state_dir, struct refs *refs, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/images", state_dir);
	DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_set(err, -errno, "open '%s': %m", path);
	while (r == 0 && (errno = 0, e = readdir(dir)))
		if (e->d_name[0] != '.' && slice_ends(slice_of(e->d_name), ".json"))
			r = read_one(dirfd(dir), e->d_name, refs, err);
	if (r == 0 && errno)
		r = err_set(err, -errno, "read '%s': %m", path);
	(void)closedir(dir);
	if (refs->n > 0)
		qsort(refs->items, refs->n, sizeof(*refs->items), by_use);
	return r;
}

/* Of its tar, which is about what it takes on the disk. */
static int64_t layer_bytes(const char *state_dir, const char *name)
{
	scoped_mem char *path = mem_printf("%s/layers/%s/layer.json", state_dir, name);
	scoped_str struct str text = {0};
	int64_t bytes = 0;
	json_t *root;

	if (fdio_read_file(AT_FDCWD, path, ABOUT_MAX, &text) < 0)
		return 0;
	root = json_loadb(text.p, text.len, 0, NULL);
	bytes = json_integer_value(json_object_get(root, "bytes"));
	json_decref(root);
	return bytes;
}

/* What ref adds to those before it. */
static int64_t bytes_more(const char *state_dir, const struct ref *ref, struct map *counted)
{
	const json_t *layers = layers_of(ref);
	int64_t bytes = 0;

	for (size_t i = 0; i < json_array_size(layers); i++) {
		const char *name = json_string_value(json_array_get(layers, i));
		void **slot = name ? map_slot(counted, slice_of(name)) : NULL;

		if (slot && !*slot)
			bytes += layer_bytes(state_dir, name);
		if (slot)
			*slot = counted;
	}
	return bytes;
}

static int drop(const char *state_dir, const struct ref *ref, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/images/%s", state_dir, ref->file);

	if (unlink(path) < 0 && errno != ENOENT)
		return err_set(err, -errno, "remove '%s': %m", path);
	return 0;
}

static int drop_beyond(const char *state_dir, const struct image_refs_limits *limits,
	const struct refs *refs, struct err *err)
{
	scoped(map) struct map *counted = map_new();
	int64_t now = clock_wall_ms(), sum = 0;
	int n = 0, r = 0;

	for (size_t i = 0; r == 0 && i < refs->n; i++) {
		const struct ref *ref = &refs->items[i];
		bool is_old = limits->older_ms > 0 && now - ref->used_ms > limits->older_ms;

		if (!is_old && limits->max_bytes > 0)
			sum += bytes_more(state_dir, ref, counted);
		if (!is_old && (limits->max_bytes == 0 || sum <= limits->max_bytes))
			continue;
		r = drop(state_dir, ref, err);
		n++;
	}
	return r < 0 ? r : n;
}

int image_refs_drop(const char *state_dir, const struct image_refs_limits *limits, struct err *err)
{
	struct refs refs = {0};
	int r;

	if (limits->older_ms == 0 && limits->max_bytes == 0)
		return 0;
	r = read_all(state_dir, &refs, err);
	if (r == 0)
		r = drop_beyond(state_dir, limits, &refs, err);
	refs_done(&refs);
	return r;
}

int image_refs_each_layer(const char *state_dir, void (*tell)(void *ctx, struct slice name),
	void *ctx, struct err *err)
{
	struct refs refs = {0};
	int r = read_all(state_dir, &refs, err);

	for (size_t i = 0; r == 0 && i < refs.n; i++) {
		const json_t *layers = layers_of(&refs.items[i]);

		for (size_t k = 0; k < json_array_size(layers); k++) {
			const char *name = json_string_value(json_array_get(layers, k));

			if (name)
				tell(ctx, slice_of(name));
		}
	}
	refs_done(&refs);
	return r;
}
