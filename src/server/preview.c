/* SPDX-License-Identifier: Apache-2.0 */
#include "server/preview.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "util/clock.h"
#include "util/jsonw.h"

#define LABEL_PREFIX "pv-" /* an id's "pv_" is no part of a host name */

void preview_new_round(char ret_round[PREVIEW_ROUND_SIZE])
{
	unsigned long long value;

	if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
		abort(); /* not for so few bytes, once the system is up */
	snprintf(ret_round, PREVIEW_ROUND_SIZE, "%016llx", value);
}

static const char *visibility(const struct preview *preview)
{
	return preview->is_public ? "public" : "private";
}

void preview_write_object(const struct preview *preview, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kint(&j, "port", preview->port);
	jsonw_ktext(&j, "visibility", visibility(preview));
	jsonw_ktext(&j, "name", preview->name);
	jsonw_ktext(&j, "round", preview->round);
	jsonw_kint(&j, "created_ms", preview->created_ms);
	jsonw_object_end(&j);
}

static bool copy(char *to, size_t size, const char *from)
{
	return from && snprintf(to, size, "%s", from) < (int)size;
}

int preview_read_object(const struct store_object *object, struct preview *ret_preview)
{
	json_t *root = json_loads(object->json, 0, NULL);
	const char *shown = json_string_value(json_object_get(root, "visibility"));
	json_int_t port = json_integer_value(json_object_get(root, "port"));
	struct preview preview = {.port = (uint16_t)port,
		.is_public = shown && strcmp(shown, "public") == 0,
		.created_ms = json_integer_value(json_object_get(root, "created_ms"))};
	bool is_ours = port > 0 && port <= UINT16_MAX && id_is_valid("pv", object->name) &&
	               copy(preview.id, sizeof(preview.id), object->name) &&
	               copy(preview.account, sizeof(preview.account), object->account) &&
	               copy(preview.sandbox, sizeof(preview.sandbox), object->sandbox) &&
	               copy(preview.name, sizeof(preview.name),
			       json_string_value(json_object_get(root, "name"))) &&
	               copy(preview.round, sizeof(preview.round),
			       json_string_value(json_object_get(root, "round")));

	json_decref(root);
	if (!is_ours)
		return -EINVAL;
	*ret_preview = preview;
	return 0;
}

void preview_write(
	const struct preview *preview, const struct preview_place *place, struct str *out)
{
	scoped_str struct str url = {0};
	struct jsonw j = jsonw_to(out);
	char at[CLOCK_TEXT_LEN];

	clock_format(preview->created_ms, at);
	if (place) {
		preview_add_origin(preview->id, place, &url);
		str_putc(&url, '/');
	}
	jsonw_object(&j);
	jsonw_ktext(&j, "id", preview->id);
	jsonw_ktext(&j, "sandbox", preview->sandbox);
	jsonw_kint(&j, "port", preview->port);
	jsonw_ktext(&j, "visibility", visibility(preview));
	jsonw_ktext(&j, "name", *preview->name ? preview->name : NULL);
	jsonw_ktext(&j, "url", place ? url.p : NULL);
	jsonw_ktext(&j, "created_at", at);
	jsonw_object_end(&j);
}

void preview_add_origin(const char *id, const struct preview_place *place, struct str *out)
{
	str_printf(out, "%s://" LABEL_PREFIX "%s.%s", place->is_tls ? "https" : "http",
		id + strlen(LABEL_PREFIX), place->domain);
	if (place->port != (place->is_tls ? 443 : 80))
		str_printf(out, ":%u", place->port);
}

bool preview_read_host(struct slice host, const char *domain, char ret_id[ID_SIZE])
{
	if (host.len != ID_LEN + 1 + strlen(domain) || host.p[ID_LEN] != '.' ||
		strncasecmp(host.p + ID_LEN + 1, domain, strlen(domain)) != 0)
		return false;
	for (size_t i = 0; i < ID_LEN; i++)
		ret_id[i] =
			host.p[i] >= 'A' && host.p[i] <= 'Z' ? (char)(host.p[i] | 0x20) : host.p[i];
	ret_id[ID_LEN] = '\0';
	if (strncmp(ret_id, LABEL_PREFIX, strlen(LABEL_PREFIX)) != 0)
		return false;
	ret_id[strlen(LABEL_PREFIX) - 1] = '_';
	return id_is_valid("pv", ret_id);
}

/* Labels of letters, digits and hyphens; a name of one label would be a top-level domain. */
bool preview_is_domain(const char *text)
{
	size_t len = strlen(text);

	if (len > PREVIEW_DOMAIN_MAX || !strchr(text, '.') || strstr(text, "..") ||
		text[0] == '.' || text[len - 1] == '.')
		return false;
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0';
}
