/* SPDX-License-Identifier: Apache-2.0 */
#include "record/redact_net.h"

#include <jansson.h>

#include "record/redact_rules.h"
#include "util/base64.h"
#include "util/json_text.h"
#include "util/jsonw.h"

/* Where the credentials begin in the value of an authorization header: behind the scheme's name. */
static size_t behind_scheme(struct slice value)
{
	const char *space = value.len ? memchr(value.p, ' ', value.len) : NULL;

	return space ? (size_t)(space - value.p) + 1 : 0;
}

/* The whole value of a header that holds credentials is one secret; others are looked through. */
static bool redact_header(const struct redact_scan_rules *rules, struct slice name,
	struct slice value, struct str *out)
{
	size_t from = 0;

	if (!redact_rules_is_secret_header(name))
		return redact_scan_text(rules, value, false, out);
	if (slice_ends(name, "uthorization"))
		from = behind_scheme(value);
	if (redact_scan_is_no_value((struct slice){.p = value.p + from, .len = value.len - from}))
		return false;
	return redact_scan_put(rules, value, from, out);
}

static bool write_header(
	const struct redact_scan_rules *rules, struct jsonw *j, const char *name, const json_t *v)
{
	struct slice value = {.p = json_string_value(v), .len = json_string_length(v)};
	scoped_str struct str without = {0};
	bool found = redact_header(rules, slice_of(name), value, &without);

	jsonw_free_key(j, slice_of(name));
	jsonw_slice(j, found ? str_slice(&without) : value);
	return found;
}

static bool redact_object(const struct redact_scan_rules *rules, struct slice json, struct str *out)
{
	json_t *root = json_loadb(json.p ? json.p : "", json.len, JSON_ALLOW_NUL, NULL), *value;
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);
	bool found = false;
	const char *name;

	if (!json_is_object(root)) {
		json_decref(root);
		str_puts(out, "\"[redacted]\"");
		return true;
	}
	jsonw_object(&j);
	json_object_foreach(root, name, value)
	{
		found |= write_header(rules, &j, name, value);
	}
	jsonw_object_end(&j);
	json_decref(root);
	if (found)
		str_add(out, text.p, text.len);
	return found;
}

/* Whether there is nothing to hide in headers that our own writer made: most have nothing, and to find that out needs
 * no JSON library. False: a closer look is needed. */
static bool are_harmless(const struct redact_scan_rules *rules, struct slice json)
{
	struct json_flat flat = json_flat_of(json);
	struct json_flat_item item;
	scoped_str struct str value = {0}, without = {0};
	int r;

	while ((r = json_flat_next(&flat, &item)) > 0) {
		if (item.escaped) {
			str_reset(&value);
			str_add(&value, item.value.p, item.value.len);
			value.len = json_text_decode(value.p, value.len);
			item.value = str_slice(&value);
		}
		if (redact_header(rules, item.name, item.value, &without))
			return false;
	}
	return r == 0 && flat.at == flat.end;
}

bool redact_net_headers(const struct redact_scan_rules *rules, struct slice json, struct str *out)
{
	if (are_harmless(rules, json))
		return false;
	return redact_object(rules, json, out);
}

bool redact_net_body(const struct redact_scan_rules *rules, struct slice body,
	struct slice encoding, struct str *out)
{
	scoped_str struct str bytes = {0}, without = {0};

	if (!slice_is(encoding, "base64"))
		return redact_scan_text(rules, body, false, out);
	if (base64_decode(body, &bytes) < 0 ||
		!redact_scan_text(rules, str_slice(&bytes), false, &without))
		return false;
	jsonw_base64(out, without.p, without.len);
	return true;
}
