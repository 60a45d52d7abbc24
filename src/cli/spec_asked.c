/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spec_asked.h"

#include <string.h>

#include "util/str.h"

static json_t *as_json(const struct spec *spec)
{
	scoped_str struct str text = {0};

	spec_write(&text, spec);
	return json_loadb(text.p, text.len, 0, NULL);
}

static void keep_what_differs(json_t *asked, const json_t *usual)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(asked, next, key, value)
	{
		const json_t *other = json_object_get(usual, key);

		if (json_equal(value, other))
			(void)json_object_del(asked, key);
		else if (strcmp(key, "network") == 0)
			keep_what_differs(value, other);
	}
}

json_t *spec_asked(const struct spec *spec)
{
	scoped(spec) struct spec *usual = spec_new();
	json_t *asked = as_json(spec), *other = as_json(usual);

	keep_what_differs(asked, other);
	json_decref(other);
	return asked;
}
