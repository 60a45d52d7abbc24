/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "image/layer_make.h"
#include "image/whiteout.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define FILE_MAX (32u << 20)
#define VERSION  1

static char *path_of(const struct image_file_key *key)
{
	char hex[DIGEST_HEX_SIZE];

	digest_of(key->source, strlen(key->source), hex);
	return mem_printf("%s/images/%s.json", key->state_dir, hex);
}

static bool is_text(const json_t *object, const char *name, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && strcmp(text, wanted) == 0;
}

static bool has_layers(const json_t *root, const struct layer_store *store)
{
	const json_t *layers = json_object_get(root, "layers");

	for (size_t i = 0; i < json_array_size(layers); i++) {
		const char *name = json_string_value(json_array_get(layers, i));

		if (!name || !layer_store_has(store, name))
			return false;
	}
	return json_array_size(layers) > 0;
}

int image_file_find(
	const struct image_file_key *key, const struct layer_store *store, struct str *ret_text)
{
	scoped_mem char *path = path_of(key);
	scoped_str struct str text = {0};
	json_t *root;
	bool is_it;

	if (fdio_read_file(AT_FDCWD, path, FILE_MAX, &text) < 0)
		return 0;
	root = json_loadb(text.p, text.len, 0, NULL);
	is_it = json_integer_value(json_object_get(root, "v")) == VERSION &&
	        is_text(root, "source", key->source) && is_text(root, "identity", key->identity) &&
	        json_integer_value(json_object_get(root, "base")) == store->base &&
	        has_layers(root, store);
	json_decref(root);
	if (!is_it)
		return 0;
	(void)utimensat(AT_FDCWD, path, NULL, 0); /* used now; a disk that is read-only has no gc */
	str_add(ret_text, text.p, text.len);
	return 1;
}

static void write_words(struct jsonw *j, const char *name, const struct spec_words *words)
{
	jsonw_key(j, name);
	jsonw_array(j);
	for (size_t i = 0; i < words->n; i++)
		jsonw_text(j, words->items[i]);
	jsonw_array_end(j);
}

/* The kernel passes over the mark at the top of a layer. */
static bool hides_all_below(const struct layer_store *store, const char *name)
{
	scoped_mem char *path = mem_printf("%s/%s/fs", store->path, name);

	return lgetxattr(path, WHITEOUT_OPAQUE, NULL, 0) > 0;
}

/* Topmost first, as they are mounted. One that comes twice hides itself: the upper one says all. */
static void write_layers(
	struct jsonw *j, const struct layer_store *store, const struct image *image)
{
	bool is_hidden = false;

	jsonw_key(j, "layers");
	jsonw_array(j);
	for (size_t i = image->n_layers; i-- > 0 && !is_hidden;) {
		char name[LAYER_MAKE_NAME_SIZE];
		bool is_above = false;

		for (size_t k = i + 1; k < image->n_layers; k++)
			is_above = is_above ||
			           strcmp(image->layers[k].diff, image->layers[i].diff) == 0;
		layer_make_name(image->layers[i].diff, name);
		if (!is_above)
			jsonw_text(j, name);
		is_hidden = hides_all_below(store, name);
	}
	jsonw_array_end(j);
}

static void write_text(struct str *out, const struct image_file_key *key,
	const struct layer_store *store, const struct image *image)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kint(&j, "v", VERSION);
	jsonw_ktext(&j, "reference", key->reference);
	jsonw_ktext(&j, "source", key->source);
	jsonw_ktext(&j, "identity", key->identity);
	jsonw_ktext(&j, "digest", image->digest);
	write_layers(&j, store, image);
	jsonw_kint(&j, "base", store->base);
	write_words(&j, "env", &image->env);
	if (image->workdir)
		jsonw_ktext(&j, "workdir", image->workdir);
	if (image->user)
		jsonw_ktext(&j, "user", image->user);
	write_words(&j, "entrypoint", &image->entrypoint);
	write_words(&j, "cmd", &image->cmd);
	write_words(&j, "labels", &image->labels);
	jsonw_object_end(&j);
	str_putc(out, '\n');
}

int image_file_write(const struct image_file_key *key, const struct layer_store *store,
	const struct image *image, struct str *ret_text, struct err *err)
{
	scoped_mem char *folder = mem_printf("%s/images", key->state_dir), *path = path_of(key);
	int r = path_make_all(folder, 0700);

	write_text(ret_text, key, store, image);
	if (r == 0)
		r = fdio_replace(AT_FDCWD, path, ret_text->p, ret_text->len, 0600);
	return r < 0 ? err_set(err, r, "write '%s': %m", path) : 0;
}
