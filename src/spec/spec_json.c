/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "spec/spec_internal.h"
#include "spec/spec_parse.h"
#include "util/base64.h"
#include "util/mem.h"

#define WORDS_MAX 65536 /* items of one list */

static int want(struct err *err, const char *name, const char *what)
{
	return err_set(err, -EINVAL, "'%s' must be %s", name, what);
}

static const json_t *exact_bytes(const json_t *object, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_b64", name);
	return json_object_get(object, key);
}

/* The text or, with is_base64, the bytes it stands for. NUL ends neither a path nor an argument. */
static int decode(const json_t *v, bool is_base64, struct str *out)
{
	str_reset(out);
	if (!json_is_string(v))
		return -EINVAL;
	if (!is_base64)
		str_add(out, json_string_value(v), json_string_length(v));
	else if (base64_decode(slice_of(json_string_value(v)), out) < 0)
		return -EINVAL;
	return out->len && memchr(out->p, '\0', out->len) ? -EINVAL : 0;
}

static int read_text(
	char **at, const json_t *object, const char *name, const json_t *v, struct err *err)
{
	const json_t *b64 = exact_bytes(object, name);
	scoped_str struct str text = {0};

	if (decode(b64 ? b64 : v, b64 != NULL, &text) < 0)
		return want(err, name, "text without NUL");
	free(*at);
	*at = str_take(&text);
	return 0;
}

static int read_words(struct spec_words *at, const json_t *object, const char *name,
	const json_t *v, struct err *err)
{
	const json_t *b64 = exact_bytes(object, name);
	const json_t *from = b64 ? b64 : v;
	scoped_str struct str text = {0};

	if (!json_is_array(from) || json_array_size(from) > WORDS_MAX)
		return want(err, name, "a list of texts");
	spec_words_done(at);
	for (size_t i = 0; i < json_array_size(from); i++) {
		if (decode(json_array_get(from, i), b64 != NULL, &text) < 0)
			return want(err, name, "a list of texts without NUL");
		spec_words_add(at, text.p ? text.p : "");
	}
	return 0;
}

static int read_count(
	const char *name, const json_t *v, int64_t max, int64_t *ret_count, struct err *err)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > max)
		return want(err, name, "a whole number from 0 that fits");
	*ret_count = json_integer_value(v);
	return 0;
}

static int read_size(const char *name, const json_t *v, int64_t *ret_bytes, struct err *err)
{
	int r;

	if (!json_is_string(v))
		return read_count(name, v, INT64_MAX, ret_bytes, err);
	r = spec_parse_size(json_string_value(v), ret_bytes, err);
	return r < 0 ? err_wrap(err, r, "%s", name) : 0;
}

static int read_key(void *target, const struct spec_json_key *key, const json_t *object,
	const json_t *v, struct err *err)
{
	void *at = (char *)target + key->offset;
	int64_t count = 0;
	int r = 0;

	switch (key->kind) {
	case SPEC_JSON_TEXT:
		return read_text(at, object, key->name, v, err);
	case SPEC_JSON_WORDS:
		return read_words(at, object, key->name, v, err);
	case SPEC_JSON_SIZE:
		return read_size(key->name, v, at, err);
	case SPEC_JSON_COUNT:
		return read_count(key->name, v, INT64_MAX, at, err);
	case SPEC_JSON_U32:
		r = read_count(key->name, v, UINT32_MAX, &count, err);
		if (r == 0)
			*(uint32_t *)at = (uint32_t)count;
		return r;
	case SPEC_JSON_U16:
		r = read_count(key->name, v, UINT16_MAX, &count, err);
		if (r == 0)
			*(unsigned short *)at = (unsigned short)count;
		return r;
	case SPEC_JSON_BOOL:
		if (!json_is_boolean(v))
			return want(err, key->name, "true or false");
		*(bool *)at = json_is_true(v);
		return 0;
	case SPEC_JSON_CALL:
		return key->read(target, v, err);
	}
	return -EINVAL;
}

static bool is_bytes_of(const struct spec_json_key *key, const char *name)
{
	size_t n = strlen(key->name);

	return (key->kind == SPEC_JSON_TEXT || key->kind == SPEC_JSON_WORDS) &&
	       strncmp(name, key->name, n) == 0 && strcmp(name + n, "_b64") == 0;
}

static const struct spec_json_key *find_key(const struct spec_json_key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (strcmp(keys->name, name) == 0 || is_bytes_of(keys, name))
			return keys;
	return NULL;
}

int spec_json_read(
	void *target, const struct spec_json_key *keys, const json_t *object, struct err *err)
{
	const char *name;
	json_t *v;

	if (!json_is_object(object))
		return err_set(err, -EINVAL, "want a JSON object");
	json_object_foreach((json_t *)object, name, v)
	{
		const struct spec_json_key *key = find_key(keys, name);
		int r;

		if (!key)
			return err_set(err, -EINVAL, "there is no key '%s'", name);
		if (json_is_null(v) || strcmp(key->name, name) != 0)
			continue;
		r = read_key(target, key, object, v, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int spec_json_parse(struct slice json, json_t **ret_root, struct err *err)
{
	json_error_t why;

	*ret_root = json_loadb(json.p ? json.p : "", json.len, JSON_REJECT_DUPLICATES, &why);
	if (!*ret_root)
		return err_set(err, -EINVAL, "line %d is not JSON: %s", why.line, why.text);
	return 0;
}

void spec_json_write_given(struct jsonw *j, const char *key, const char *text)
{
	if (text)
		jsonw_ktext(j, key, text);
}

void spec_json_write_words(struct jsonw *j, const char *key, const struct spec_words *words)
{
	scoped_mem struct slice *items = new0_n(struct slice, words->n);

	for (size_t i = 0; i < words->n; i++)
		items[i] = slice_of(words->items[i]);
	jsonw_klist(j, key, items, words->n);
}
