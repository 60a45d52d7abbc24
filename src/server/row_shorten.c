/* SPDX-License-Identifier: Apache-2.0 */
#include "server/row_shorten.h"

#include <jansson.h>
#include <string.h>

#include "util/scoped.h"

#define ALL_IN_ASCII (JSON_COMPACT | JSON_ENSURE_ASCII)

static bool is_long(const json_t *value, size_t max)
{
	scoped_mem char *text = json_dumps(value, ALL_IN_ASCII | JSON_ENCODE_ANY);

	return !text || strlen(text) > max;
}

void row_shorten(struct slice object, size_t max, bool is_null, struct str *out)
{
	json_t *data = json_loadb(object.p, object.len, JSON_ALLOW_NUL, NULL);
	json_t *before = json_object_get(data, "omitted"), *value;
	json_t *omitted = json_is_array(before) ? json_copy(before) : json_array();
	scoped_mem char *text = NULL;
	const char *key;
	void *next;

	json_object_foreach_safe(data, next, key, value)
	{
		if (!is_long(value, max))
			continue;
		json_array_append_new(omitted, json_string(key));
		if (is_null)
			json_object_set_new(data, key, json_null());
		else
			json_object_del(data, key);
	}
	json_object_set_new(data, "omitted", omitted);
	text = json_dumps(data, ALL_IN_ASCII);
	str_puts(out, text ? text : "{}");
	json_decref(data);
}
