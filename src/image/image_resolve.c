/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/fetch.h"
#include "image/image_file.h"
#include "image/layer_make.h"
#include "image/layout.h"
#include "image/reference.h"
#include "util/id.h"
#include "util/mem.h"
#include "util/scoped.h"

struct work {
	const struct image_request *request;
	struct reference ref;
	struct layer_store store;
	int fd;         /* of a path */
	struct stat st; /* of it */
	char *source, *identity;
	char top[DIGEST_HEX_SIZE]; /* of a folder: what identity is about */
	struct image image;
	struct whiteout_counts counts;
};

static int make_layer(struct work *w, const struct layout *layout, size_t i, struct err *err)
{
	const struct image_layer *layer = &w->image.layers[i];
	scoped_mem char *label = mem_printf("unpacking layer %zu of %zu", i + 1, w->image.n_layers);
	struct layer_make make = {
		.store = &w->store, .limits = &w->request->limits, .label = label};
	char name[LAYER_MAKE_NAME_SIZE];
	scoped_fd int fd = -1;
	int r;

	layer_make_name(layer->diff, name);
	if (layer_store_has(&w->store, name))
		return 0;
	r = layer_make_check_len(make.limits, layer->size, err);
	if (r < 0)
		return r;
	fd = layout_open_layer(layout, &w->image, i, err);
	if (fd < 0)
		return fd;
	make.file_fd = fd;
	return layer_make_named(&make, layer->diff, &w->counts, err);
}

/* All of an image that lies in a folder. */
static int make_image(struct work *w, const struct layout *layout, struct err *err)
{
	int r = layout_read_image(layout, w->ref.tag, &w->image, err);

	for (size_t i = 0; r == 0 && i < w->image.n_layers; i++)
		r = make_layer(w, layout, i, err);
	return r;
}

static int make_of_folder(struct work *w, enum layout_kind kind, struct err *err)
{
	const struct layout layout = {
		.dir_fd = w->fd, .kind = kind, .jail_base = w->store.base, .top = w->top};

	return make_image(w, &layout, err);
}

/* A tar that is no image but a root: the one layer of one. */
static int take_root(struct work *w, struct layer_temp *temp, const char *digest, struct err *err)
{
	char name[LAYER_MAKE_NAME_SIZE];

	if (w->ref.tag)
		return err_set(err, -EINVAL,
			"it is a root filesystem, which has no '%s': leave out what is behind the "
			"colon",
			w->ref.tag);
	if (w->counts.n_strangers)
		return err_set(err, -ERANGE,
			"%llu of its files belong to users or groups beyond 65535, which a sandbox "
			"does not have: have it made with other owners",
			w->counts.n_strangers);
	layer_make_name(digest, name);
	w->image.layers = new0(struct image_layer);
	w->image.n_layers = 1;
	memcpy(w->image.layers[0].diff, digest, DIGEST_HEX_SIZE);
	w->image.digest = mem_printf("sha256:%s", digest);
	return layer_store_finish(temp, name, err);
}

/* Unpacked first, to see what it is: a root is a layer then, an archive of an image a folder that holds one. */
static int make_of_file(struct work *w, struct err *err)
{
	/* Whose the files of an archive of an image are says nothing: whoever made it. */
	const struct unpack_limits limits = {.bytes = w->request->limits.bytes,
		.entries = w->request->limits.entries,
		.any_owner = true};
	const struct layer_make make = {
		.store = &w->store, .limits = &limits, .label = "unpacking", .file_fd = w->fd};
	struct layout layout = {.jail_base = w->store.base};
	struct layer_temp temp = LAYER_TEMP_NONE;
	char digest[DIGEST_HEX_SIZE], id[ID_SIZE];
	int r;

	id_new("tr", id);
	r = layer_store_begin(&w->store, id, &temp, err);
	if (r >= 0)
		r = layer_make_fill(&make, &temp, digest, &w->counts, err);
	if (r == 0) {
		layout.dir_fd = temp.fs_fd;
		layout.kind = layout_look(temp.fs_fd);
		r = layout.kind == LAYOUT_NONE ? take_root(w, &temp, digest, err)
		                               : make_image(w, &layout, err);
	}
	layer_store_drop(&temp);
	return r;
}

static int make_of_registry(struct work *w, struct err *err)
{
	struct fetch fetch = {.place = w->ref.place,
		.uid = w->request->uid,
		.gid = w->request->gid,
		.bytes_max = w->request->limits.bytes};
	struct layer_temp temp = LAYER_TEMP_NONE;
	struct layout layout = {.kind = LAYOUT_SKOPEO, .jail_base = w->store.base};
	scoped_fd int fd = -1;
	char id[ID_SIZE];
	int r;

	id_new("ft", id);
	r = layer_store_begin(&w->store, id, &temp, err);
	fetch.folder = temp.path;
	fetch.folder_fd = temp.fs_fd;
	if (r >= 0)
		r = fetch_run(&fetch, err);
	if (r == 0) {
		fd = openat(
			temp.fs_fd, FETCH_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? err_set(err, -errno, "open what skopeo fetched: %m") : 0;
	}
	layout.dir_fd = fd;
	if (r == 0)
		r = make_image(w, &layout, err);
	layer_store_drop(&temp);
	return r;
}

static int identify_folder(struct work *w, enum layout_kind *ret_kind, struct err *err)
{
	struct layout layout = {.dir_fd = w->fd, .kind = layout_look(w->fd)};
	scoped_str struct str top = {0};
	int r;

	*ret_kind = layout.kind;
	if (layout.kind == LAYOUT_NONE)
		return err_set(err, -EINVAL,
			"the folder holds no image (no oci-layout with index.json): a root "
			"filesystem "
			"that is a folder is named by --rootfs");
	r = layout_read_top(&layout, &top, err);
	if (r < 0)
		return r;
	digest_of(top.p ? top.p : "", top.len, w->top);
	w->identity = mem_printf("index sha256:%s", w->top);
	return 0;
}

static void identify_file(struct work *w)
{
	w->identity = mem_printf("file %llu %llu %lld %lld.%09ld %lld.%09ld",
		(unsigned long long)w->st.st_dev, (unsigned long long)w->st.st_ino,
		(long long)w->st.st_size, (long long)w->st.st_mtim.tv_sec, w->st.st_mtim.tv_nsec,
		(long long)w->st.st_ctim.tv_sec, w->st.st_ctim.tv_nsec);
}

static int open_path(struct work *w, struct err *err)
{
	scoped_mem char *real = realpath(w->ref.place, NULL);

	w->fd = real ? open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	if (w->fd < 0 || fstat(w->fd, &w->st) < 0)
		return err_set(err, -errno, "open '%s': %m", w->ref.place);
	if (!S_ISREG(w->st.st_mode) && !S_ISDIR(w->st.st_mode))
		return err_set(err, -EINVAL, "'%s' is neither a file nor a folder", w->ref.place);
	w->source = mem_printf("%s%s%s", real, w->ref.tag ? ":" : "", w->ref.tag ? w->ref.tag : "");
	return 0;
}

static int find(struct work *w, enum layout_kind *ret_kind, struct err *err)
{
	int r = 0;

	if (w->ref.kind == REFERENCE_REGISTRY) {
		w->source = mem_dup(w->ref.place);
		w->identity = mem_dup("registry");
		return 0;
	}
	r = open_path(w, err);
	if (r == 0 && S_ISDIR(w->st.st_mode))
		r = identify_folder(w, ret_kind, err);
	else if (r == 0)
		identify_file(w);
	return r;
}

static int make(struct work *w, enum layout_kind kind, struct err *err)
{
	layer_store_clean(&w->store);
	if (w->ref.kind == REFERENCE_REGISTRY)
		return make_of_registry(w, err);
	return S_ISDIR(w->st.st_mode) ? make_of_folder(w, kind, err) : make_of_file(w, err);
}

static void write_note(const struct whiteout_counts *counts, struct str *ret_note)
{
	if (counts->n_devices)
		str_printf(ret_note, "%llu device node%s", counts->n_devices,
			counts->n_devices == 1 ? "" : "s");
	if (counts->n_xattrs)
		str_printf(ret_note, "%s%llu extended attribute%s", counts->n_devices ? ", " : "",
			counts->n_xattrs, counts->n_xattrs == 1 ? "" : "s");
}

/* Whether what its name was resolved to before holds as long as its identity does. In a folder as docker packs it, files
 * may change under the names that manifest.json has for them. */
static bool may_be_known(const struct work *w, enum layout_kind kind)
{
	if (w->ref.kind == REFERENCE_REGISTRY)
		return !w->request->is_anew;
	return kind != LAYOUT_DOCKER;
}

static int resolve(struct work *w, struct str *ret_json, struct str *ret_note, struct err *err)
{
	struct image_file_key key = {
		.state_dir = w->request->state_dir, .reference = w->request->reference};
	enum layout_kind kind = LAYOUT_NONE;
	int r = layer_store_open(&w->store, w->request->state_dir, err);

	if (r == 0)
		r = find(w, &kind, err);
	if (r < 0)
		return r;
	key.source = w->source;
	key.identity = w->identity;
	if (may_be_known(w, kind) && image_file_find(&key, &w->store, ret_json))
		return 0;
	r = make(w, kind, err);
	if (r < 0)
		return r;
	write_note(&w->counts, ret_note);
	return image_file_write(&key, &w->store, &w->image, ret_json, err);
}

int image_resolve(const struct image_request *request, struct str *ret_json, struct str *ret_note,
	struct err *err)
{
	struct work w = {.request = request, .fd = -1, .store = {.fd = -1}};
	int r = reference_parse(&w.ref, request->reference, err);

	if (r == 0) {
		r = resolve(&w, ret_json, ret_note, err);
		if (r < 0)
			r = err_wrap(err, r, "image '%.200s'", request->reference);
	}
	image_done(&w.image);
	layer_store_done(&w.store);
	reference_done(&w.ref);
	scoped_close(&w.fd);
	free(w.source);
	free(w.identity);
	return r;
}
