/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/office_removed.h"

#include <errno.h>
#include <string.h>

#include "launcher/ledger.h"
#include "util/id.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/utf8.h"

#define IDS_MAX  1000
#define TEXT_MAX 64 /* bytes of one: all of them fit into an answer */

struct search {
	struct map *wanted;
	struct jsonw j;
};

static void add_text(struct jsonw *j, const char *key, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	jsonw_kslice(j, key, (struct slice){.p = text, .len = utf8_cut(text, len, TEXT_MAX)});
}

static int on_line(void *ctx, const struct ledger_line *line)
{
	struct search *search = ctx;

	if (strcmp(line->act, LEDGER_REMOVE) != 0 || line->owner != 0 ||
		!map_remove(search->wanted, slice_of(line->sandbox)))
		return 0;
	jsonw_free_key(&search->j, slice_of(line->sandbox));
	jsonw_object(&search->j);
	add_text(&search->j, "actor", line->actor);
	add_text(&search->j, "detail", line->detail);
	jsonw_object_end(&search->j);
	return map_len(search->wanted) == 0; /* 1: all were found */
}

static int take_ids(const json_t *ids, struct map *wanted, struct err *err)
{
	if (json_array_size(ids) > IDS_MAX)
		return err_set(err, -E2BIG, "at most %d sandboxes at once", IDS_MAX);
	for (size_t i = 0; i < json_array_size(ids); i++) {
		const char *id = json_string_value(json_array_get(ids, i));

		if (!id || !id_is_valid("sb", id))
			return err_set(err, -EINVAL, "no sandbox has this id");
		*map_slot(wanted, slice_of(id)) = wanted;
	}
	return 0;
}

int office_removed(const struct office *office, const json_t *ids, struct str *out, struct err *err)
{
	scoped(map) struct map *wanted = map_new();
	struct search search = {.wanted = wanted, .j = jsonw_to(out)};
	int r = take_ids(ids, wanted, err);

	jsonw_object(&search.j);
	jsonw_kbool(&search.j, "ok", true);
	jsonw_key(&search.j, "removed");
	jsonw_object(&search.j);
	if (r == 0 && map_len(wanted) > 0)
		r = ledger_walk(office->state_dir, on_line, &search, err);
	jsonw_object_end(&search.j);
	jsonw_object_end(&search.j);
	return r < 0 ? r : 0;
}
