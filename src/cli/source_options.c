/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/elsewhere.h"
#include "cli/records.h"
#include "cli/source.h"
#include "spec/spec_parse.h"
#include "util/clock.h"
#include "util/mem.h"

int source_options_add_label(void *base, const char *value, struct err *err)
{
	struct source_options *o = base;
	struct spec_pair pair;
	int r = spec_parse_pair(value, &pair, err);

	if (r < 0)
		return r;
	free(pair.key);
	free(pair.value);
	spec_words_add(&o->labels, value);
	return 0;
}

const struct option source_options_table[] = {
	{"exec", 0, "EX", "only this exec and what it started (an id or its beginning)",
		OPTION_TEXT, offsetof(struct source_options, exec)},
	{"since", 0, "WHEN",
		"from here on: a clock time (UTC), a duration ago (5m), +TIME from the start, or "
		"an event's seq",
		OPTION_TEXT, offsetof(struct source_options, since)},
	{"until", 0, "WHEN", "up to here", OPTION_TEXT, offsetof(struct source_options, until)},
	{"noise", 0, NULL, "also /proc, /sys, /dev and libraries that were only read", OPTION_ON,
		offsetof(struct source_options, noise)},
	{"internal", 0, NULL, "also what Cloche itself did inside", OPTION_ON,
		offsetof(struct source_options, internal)},
	{"follow", 'f', NULL, "go on while the sandbox lives", OPTION_ON,
		offsetof(struct source_options, follow)},
	{"label", 0, "K=V", "all sandboxes with this label, instead of an ID; may be given again",
		OPTION_CALL, .set = source_options_add_label},
	{NULL},
};

const struct option_group source_options_groups[] = {{"Options", source_options_table}, {NULL}};

void source_options_done(void *options)
{
	struct source_options *o = options;

	spec_words_done(&o->labels);
}

static int check_bound(const char *name, const char *text, struct err *err)
{
	struct view_bound bound;
	int r;

	if (!text)
		return 0;
	r = view_filter_parse_bound(text, 0, clock_wall_ms(), &bound, err);
	return r < 0 ? err_wrap(err, r, "option '--%s'", name) : 0;
}

int source_options_check(void *options, char **args, size_t n_args, struct err *err)
{
	const struct source_options *o = options;
	int r;

	if (n_args && o->labels.n)
		return err_set(err, -EINVAL, "give an ID or --label, not both");
	if (!n_args && !o->labels.n)
		return err_set(err, -EINVAL, "which sandbox? give its ID, 'last', or --label K=V");
	r = check_bound("since", o->since, err);
	return r < 0 ? r : check_bound("until", o->until, err);
}

bool source_has_labels(const json_t *have, const struct spec_words *labels)
{
	for (size_t i = 0; i < labels->n; i++) {
		const char *eq = strchr(labels->items[i], '=');
		scoped_mem char *key = mem_copy(labels->items[i], (size_t)(eq - labels->items[i]));
		const char *value = json_string_value(json_object_get(have, key));

		if (!value || strcmp(value, eq + 1) != 0)
			return false;
	}
	return true;
}

static bool entry_has_labels(
	const struct cli *cli, const struct record_entry *entry, const struct spec_words *labels)
{
	scoped(reader) struct reader *reader = NULL;
	struct slice text;
	json_t *meta;
	bool has;

	if (!records_may_read(cli, entry) || records_open(cli, entry->id, &reader, NULL) < 0)
		return false;
	text = reader_meta(reader);
	meta = json_loadb(text.p ? text.p : "", text.len, 0, NULL);
	has = source_has_labels(json_object_get(json_object_get(meta, "spec"), "labels"), labels);
	json_decref(meta);
	return has;
}

void source_ids_add(struct source_ids *ids, const char *id)
{
	ids->items = mem_grow(ids->items, ids->n + 1, ID_SIZE);
	memcpy(ids->items[ids->n++], id, ID_SIZE);
}

static int find_here(const struct cli *cli, const struct source_options *o, struct source_ids *ids,
	struct err *err)
{
	struct record_list list;
	int r = records_list(cli, &list, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++)
		if (entry_has_labels(cli, &list.items[i], &o->labels))
			source_ids_add(ids, list.items[i].id);
	records_list_done(&list);
	return 0;
}

static int find_by_labels(const struct cli *cli, const struct source_options *o,
	struct source_ids *ids, struct err *err)
{
	int r = cli->elsewhere ? cli->elsewhere->find(cli, &o->labels, ids, err)
	                       : find_here(cli, o, ids, err);

	if (r < 0)
		return r;
	if (ids->n)
		return 0;
	return err_set(err, -ENOENT, "no record has the label '%s'%s", o->labels.items[0],
		o->labels.n > 1 ? " and the others" : "");
}

int source_find(const struct cli *cli, const struct source_options *o, char **args, size_t n_args,
	struct source_ids *ret_ids, struct err *err)
{
	char id[ID_SIZE];
	int r;

	*ret_ids = (struct source_ids){0};
	if (!n_args)
		return find_by_labels(cli, o, ret_ids, err);
	r = records_resolve(cli, args[0], id, err);
	if (r == 0)
		source_ids_add(ret_ids, id);
	return r;
}

void source_ids_done(struct source_ids *ids)
{
	free(ids->items);
	*ids = (struct source_ids){0};
}
