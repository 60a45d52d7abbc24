/* SPDX-License-Identifier: Apache-2.0 */
#include "image/document.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "image/document_index.h"
#include "image/parcel.h"

#define WORDS_MAX 4096         /* variables, words of a command, labels: of each */
#define WORD_MAX  (128u << 10) /* what execve takes in one */

int document_is_digest(struct slice text)
{
	if (text.len != DOCUMENT_DIGEST_LEN || !slice_starts(text, "sha256:"))
		return 0;
	for (size_t i = strlen("sha256:"); i < text.len; i++)
		if (!strchr("0123456789abcdef", text.p[i]) || !text.p[i])
			return 0;
	return 1;
}

struct slice document_text(const json_t *v)
{
	return (struct slice){.p = json_string_value(v), .len = json_string_length(v)};
}

static int put_digest(struct str *out, enum parcel_type type, const json_t *v, struct err *err)
{
	struct slice text = document_text(v);

	if (slice_starts(text, "sha512:"))
		return err_set(err, -EOPNOTSUPP,
			"it uses SHA-512 digests, which are not supported: have it made with "
			"SHA-256");
	if (!document_is_digest(text))
		return err_set(err, -EBADMSG, "a digest in it is none");
	parcel_add(out, type, text);
	return 0;
}

int document_put_descriptor(struct str *out, int type, const json_t *descriptor, struct err *err)
{
	json_int_t size = json_integer_value(json_object_get(descriptor, "size"));
	int r = put_digest(out, (enum parcel_type)type, json_object_get(descriptor, "digest"), err);

	if (r < 0)
		return r;
	if (!json_is_integer(json_object_get(descriptor, "size")) || size < 0)
		return err_set(err, -EBADMSG, "it names something without its size");
	parcel_add_count(out, PARCEL_SIZE, (unsigned long long)size);
	return 0;
}

static int check_layer_type(const json_t *layer, struct err *err)
{
	struct slice type = document_text(json_object_get(layer, "mediaType"));

	if (slice_ends(type, "+encrypted"))
		return err_set(err, -EOPNOTSUPP,
			"its layers are encrypted: decrypt it first (skopeo copy "
			"--decryption-key)");
	if (slice_starts(type, "application/vnd.oci.image.layer.") ||
		slice_starts(type, "application/vnd.docker.image.rootfs."))
		return 0;
	return err_set(err, -EOPNOTSUPP, "it is no image of files: a layer is '%.100s'",
		type.p ? type.p : "");
}

static int check_n_layers(const json_t *layers, struct err *err)
{
	if (!json_is_array(layers) || json_array_size(layers) == 0)
		return err_set(err, -EBADMSG, "it has no layers");
	if (json_array_size(layers) > DOCUMENT_LAYERS_MAX)
		return err_set(err, -E2BIG,
			"it has %zu layers, %d is the most: have it made with fewer (squash it)",
			json_array_size(layers), DOCUMENT_LAYERS_MAX);
	return 0;
}

static int read_manifest(const json_t *root, struct str *out, struct err *err)
{
	const json_t *layers = json_object_get(root, "layers");
	int r;

	if (json_integer_value(json_object_get(root, "schemaVersion")) == 1)
		return err_set(err, -EOPNOTSUPP,
			"it has the old form (schema 1): copy it anew with a tool of today (skopeo "
			"copy "
			"--format oci)");
	r = check_n_layers(layers, err);
	if (r == 0)
		r = document_put_descriptor(
			out, PARCEL_CONFIG, json_object_get(root, "config"), err);
	for (size_t i = 0; r == 0 && i < json_array_size(layers); i++) {
		r = check_layer_type(json_array_get(layers, i), err);
		if (r == 0)
			r = document_put_descriptor(
				out, PARCEL_LAYER, json_array_get(layers, i), err);
	}
	return r;
}

/* A list of words, or nothing. */
static int put_words(struct str *out, enum parcel_type type, const json_t *list, const char *what,
	struct err *err)
{
	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || json_array_size(list) > WORDS_MAX)
		return err_set(err, -EBADMSG, "its %s is no list of at most %d", what, WORDS_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct slice word = document_text(json_array_get(list, i));

		if (!word.p || word.len > WORD_MAX)
			return err_set(err, -EBADMSG, "its %s holds what is no text", what);
		parcel_add(out, type, word);
	}
	return 0;
}

static int put_env(struct str *out, const json_t *list, struct err *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct slice pair = document_text(json_array_get(list, i));

		if (!pair.p || pair.p[0] == '=' || !memchr(pair.p, '=', pair.len))
			return err_set(err, -EBADMSG, "a variable in it is not NAME=VALUE");
	}
	return put_words(out, PARCEL_ENV, list, "list of variables", err);
}

static int put_labels(struct str *out, const json_t *labels, struct err *err)
{
	const char *key;
	json_t *value;

	if (json_object_size(labels) > WORDS_MAX)
		return err_set(err, -EBADMSG, "it has more than %d labels", WORDS_MAX);
	json_object_foreach((json_t *)labels, key, value)
	{
		scoped_str struct str pair = {0};

		/* A key that a label of ours cannot have is left out: it is for people only. */
		if (!json_is_string(value) || strchr(key, '='))
			continue;
		str_printf(&pair, "%s=%s", key, json_string_value(value));
		parcel_add(out, PARCEL_LABEL, str_slice(&pair));
	}
	return 0;
}

static int put_place(
	struct str *out, enum parcel_type type, const json_t *v, const char *what, struct err *err)
{
	if (!v || json_is_null(v) || json_string_length(v) == 0)
		return json_is_null(v) || !v || json_is_string(v)
		               ? 0
		               : err_set(err, -EBADMSG, "its %s is no text", what);
	if (json_string_length(v) > WORD_MAX)
		return err_set(err, -EBADMSG, "its %s is too long", what);
	parcel_add(out, type, document_text(v));
	return 0;
}

static int check_platform(const json_t *root, const char *arch, struct err *err)
{
	const char *os = json_string_value(json_object_get(root, "os"));
	const char *has = json_string_value(json_object_get(root, "architecture"));

	/* Some tools leave both empty. */
	if ((!os || !*os || strcmp(os, "linux") == 0) && (!has || !*has || strcmp(has, arch) == 0))
		return 0;
	return err_set(err, -ENOEXEC, "it is for %.40s/%.40s, this host is linux/%s",
		os ? os : "linux", has ? has : "?", arch);
}

static int read_config(
	const json_t *root, const struct document_wish *wish, struct str *out, struct err *err)
{
	const json_t *diffs = json_object_get(json_object_get(root, "rootfs"), "diff_ids");
	const json_t *c = json_object_get(root, "config");
	int r = check_platform(root, wish->arch, err);

	if (r == 0)
		r = check_n_layers(diffs, err);
	for (size_t i = 0; r == 0 && i < json_array_size(diffs); i++)
		r = put_digest(out, PARCEL_DIFF, json_array_get(diffs, i), err);
	if (r == 0)
		r = put_env(out, json_object_get(c, "Env"), err);
	if (r == 0)
		r = put_place(out, PARCEL_WORKDIR, json_object_get(c, "WorkingDir"),
			"working folder", err);
	if (r == 0)
		r = put_place(out, PARCEL_USER, json_object_get(c, "User"), "user", err);
	if (r == 0)
		r = put_words(out, PARCEL_ENTRYPOINT, json_object_get(c, "Entrypoint"),
			"entrypoint", err);
	if (r == 0)
		r = put_words(out, PARCEL_CMD, json_object_get(c, "Cmd"), "command", err);
	return r < 0 ? r : put_labels(out, json_object_get(c, "Labels"), err);
}

int document_read(enum document_kind kind, struct slice json, const struct document_wish *wish,
	struct str *out, struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(json.p, json.len, JSON_REJECT_DUPLICATES, &why);
	int r = 0;

	if (!root)
		return err_set(
			err, -EBADMSG, "it is not JSON (line %d: %.120s)", why.line, why.text);
	switch (kind) {
	case DOCUMENT_INDEX:
		r = document_index_read(root, wish, out, err);
		break;
	case DOCUMENT_MANIFEST:
		r = read_manifest(root, out, err);
		break;
	case DOCUMENT_CONFIG:
		r = read_config(root, wish, out, err);
		break;
	case DOCUMENT_DOCKER:
		r = document_index_read_docker(root, wish, out, err);
		break;
	}
	json_decref(root);
	return r;
}
