/* SPDX-License-Identifier: Apache-2.0 */
#include "image/document_index.h"

#include <errno.h>
#include <string.h>

#include "image/parcel.h"

#define IMAGES_MAX 4096
#define NAMES_MAX  300 /* of those that a sentence lists */

#define REF_NAME   "org.opencontainers.image.ref.name"
#define REF_NAME2  "io.containerd.image.name"

static const char *annotation(const json_t *entry, const char *key)
{
	return json_string_value(json_object_get(json_object_get(entry, "annotations"), key));
}

/* The tag alone, or the whole name that some tools write there. */
static bool has_tag(const json_t *entry, const char *tag)
{
	static const char *const keys[] = {REF_NAME, REF_NAME2};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *name = annotation(entry, keys[i]);
		size_t len = name ? strlen(name) : 0, n = strlen(tag);

		if (name && (strcmp(name, tag) == 0 || (len > n && name[len - n - 1] == ':' &&
							       strcmp(name + len - n, tag) == 0)))
			return true;
	}
	return false;
}

static const char *platform(const json_t *entry, const char *key)
{
	return json_string_value(json_object_get(json_object_get(entry, "platform"), key));
}

/* What says nothing of a platform may be for any: its config will tell. */
static bool fits(const json_t *entry, const struct document_wish *wish)
{
	const char *os = platform(entry, "os"), *arch = platform(entry, "architecture");

	if (wish->tag && !has_tag(entry, wish->tag))
		return false;
	return !os || !arch || (strcmp(os, "linux") == 0 && strcmp(arch, wish->arch) == 0);
}

static void add_name(struct str *names, const char *name)
{
	if (name && names->len < NAMES_MAX)
		str_printf(names, "%s%.80s", names->len ? ", " : "", name);
}

static int say_none(const json_t *list, const struct document_wish *wish, struct err *err)
{
	scoped_str struct str names = {0};
	bool is_tag_there = !wish->tag;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);

		is_tag_there = is_tag_there || has_tag(entry, wish->tag);
	}
	for (size_t i = 0; i < json_array_size(list); i++)
		add_name(&names, is_tag_there ? platform(json_array_get(list, i), "architecture")
					      : annotation(json_array_get(list, i), REF_NAME));
	if (is_tag_there)
		return err_set(err, -ENOEXEC, "it has nothing for linux/%s, only for: %s",
			wish->arch, names.p ? names.p : "nothing");
	return err_set(err, -ENOENT, "it has no image named '%.100s'; there is: %s", wish->tag,
		names.p ? names.p : "none with a name");
}

static int say_many(const json_t *list, struct err *err)
{
	scoped_str struct str names = {0};

	for (size_t i = 0; i < json_array_size(list); i++)
		add_name(&names, annotation(json_array_get(list, i), REF_NAME));
	return err_set(err, -EINVAL, "it holds several images, so name one behind a colon: %s",
		names.p ? names.p : "none of them has a name");
}

static bool is_index(const json_t *entry)
{
	struct slice type = document_text(json_object_get(entry, "mediaType"));

	return slice_is(type, "application/vnd.oci.image.index.v1+json") ||
	       slice_is(type, "application/vnd.docker.distribution.manifest.list.v2+json");
}

/* Attestations and signatures lie beside images in some indexes. */
static bool is_image(const json_t *entry)
{
	struct slice type = document_text(json_object_get(entry, "mediaType"));
	const char *arch = platform(entry, "architecture");

	if (json_object_get(entry, "artifactType") || (arch && strcmp(arch, "unknown") == 0))
		return false;
	return is_index(entry) || !type.p ||
	       slice_is(type, "application/vnd.oci.image.manifest.v1+json") ||
	       slice_is(type, "application/vnd.docker.distribution.manifest.v2+json");
}

static const json_t *only_one(const json_t *list, const struct document_wish *wish, int *ret_n)
{
	const json_t *found = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		const char *digest = json_string_value(json_object_get(entry, "digest"));
		const char *before = json_string_value(json_object_get(found, "digest"));

		if (!is_image(entry) || !fits(entry, wish))
			continue;
		if (found && digest && before && strcmp(digest, before) == 0)
			continue; /* the same one under two names */
		*ret_n += 1;
		found = found ? found : entry;
	}
	return found;
}

int document_index_read(
	const json_t *root, const struct document_wish *wish, struct str *out, struct err *err)
{
	const json_t *list = json_object_get(root, "manifests"), *found;
	int n, r;

	if (!json_is_array(list) || json_array_size(list) > IMAGES_MAX)
		return err_set(err, -EBADMSG, "it has no list of images");
	found = only_one(list, wish, &n);
	if (!found)
		return say_none(list, wish, err);
	/* Of several for one platform (variants) in an index of one image, the first is the one to take. */
	if (n > 1 &&
		(!platform(found, "architecture") || (!wish->tag && annotation(found, REF_NAME))))
		return say_many(list, err);
	r = document_put_descriptor(out, PARCEL_DIGEST, found, err);
	if (r == 0 && is_index(found))
		parcel_add(out, PARCEL_NESTED, slice_of(""));
	return r;
}

/* The tag alone, the whole name, or as much of its end as tells it: docker.io/ may be left out. */
static bool is_named(const char *name, const char *tag)
{
	size_t len = strlen(name), n = strlen(tag);
	char before = len > n ? name[len - n - 1] : '/';

	return len >= n && strcmp(name + len - n, tag) == 0 &&
	       (before == ':' || (before == '/' && (len == n || strchr(tag, ':'))));
}

static bool has_repo_tag(const json_t *entry, const char *tag)
{
	const json_t *tags = json_object_get(entry, "RepoTags");

	for (size_t i = 0; i < json_array_size(tags); i++) {
		const char *name = json_string_value(json_array_get(tags, i));

		if (name && is_named(name, tag))
			return true;
	}
	return false;
}

static int put_docker(struct str *out, const json_t *entry, struct err *err)
{
	const json_t *layers = json_object_get(entry, "Layers");
	struct slice config = document_text(json_object_get(entry, "Config"));

	if (!config.p || !json_is_array(layers) || json_array_size(layers) == 0 ||
		json_array_size(layers) > DOCUMENT_LAYERS_MAX)
		return err_set(err, -EBADMSG, "it names no config, or not 1 to %d layers",
			DOCUMENT_LAYERS_MAX);
	parcel_add(out, PARCEL_CONFIG, config);
	for (size_t i = 0; i < json_array_size(layers); i++) {
		struct slice path = document_text(json_array_get(layers, i));

		if (!path.p)
			return err_set(err, -EBADMSG, "a layer in it has no path");
		parcel_add(out, PARCEL_LAYER, path);
	}
	return 0;
}

int document_index_read_docker(
	const json_t *root, const struct document_wish *wish, struct str *out, struct err *err)
{
	const json_t *found = NULL;
	size_t n = 0;

	if (!json_is_array(root) || json_array_size(root) > IMAGES_MAX)
		return err_set(err, -EBADMSG, "it is no list of images");
	for (size_t i = 0; i < json_array_size(root); i++)
		if (!wish->tag || has_repo_tag(json_array_get(root, i), wish->tag)) {
			found = json_array_get(root, i);
			n++;
		}
	if (n == 0)
		return err_set(
			err, -ENOENT, "it has no image named '%.100s'", wish->tag ? wish->tag : "");
	if (n > 1)
		return err_set(err, -EINVAL,
			"it holds several images, so name the tag of one behind a colon");
	return put_docker(out, found, err);
}
