/* SPDX-License-Identifier: Apache-2.0 */
/* ps: sandboxes of the account. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ps_list.h"
#include "cli/verb_options.h"
#include "remote/remote_verbs.h"
#include "remote/request.h"
#include "util/clock.h"
#include "util/mem.h"

struct listing {
	const struct ps_options *o;
	int64_t since_ms;
	json_t *all; /* as they came */
};

static const char *text_of(const json_t *item, const char *key)
{
	return json_string_value(json_object_get(item, key));
}

static int64_t created_ms(const json_t *item)
{
	const char *text = text_of(item, "created_at");
	int64_t ms = 0;

	return text && clock_parse(text, &ms) == 0 ? ms : 0;
}

static int take_item(void *ctx, json_t *item, struct err *err)
{
	struct listing *l = ctx;

	if (!text_of(item, "id") || (l->o->since && created_ms(item) < l->since_ms))
		return 0;
	if (source_has_labels(json_object_get(item, "labels"), &l->o->labels))
		json_array_append(l->all, item);
	return 0;
}

/* With a state NULL: all. */
static int ask(struct link *link, struct listing *l, const char *state, struct err *err)
{
	scoped_str struct str path = {0};

	str_puts(&path, "/v1/sandboxes?");
	if (state)
		str_printf(&path, "state=%s&", state);
	if (l->o->labels.n) {
		str_puts(&path, "label=");
		address_add_part(&path, l->o->labels.items[0]);
	}
	while (path.len && strchr("?&", path.p[path.len - 1]))
		path.p[--path.len] = '\0';
	return request_pages(link, path.p, take_item, l, err);
}

/* Of one that changed its state between two requests, what came last counts. */
static int newest_first(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	return strcmp(text_of(*y, "id"), text_of(*x, "id"));
}

static void add_all(struct ps_list *list, const json_t *all)
{
	size_t n = json_array_size(all);
	scoped_mem json_t **sorted = new0_n(json_t *, n);

	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(all, i);
	if (n)
		qsort(sorted, n, sizeof(json_t *), newest_first);
	for (size_t i = 0; i < n; i++) {
		scoped_mem char *json = json_dumps(sorted[i], JSON_COMPACT);

		if (i > 0 && strcmp(text_of(sorted[i - 1], "id"), text_of(sorted[i], "id")) == 0)
			continue;
		ps_list_add(list, &(struct ps_row){.id = text_of(sorted[i], "id"),
					  .state = text_of(sorted[i], "state"),
					  .created_ms = created_ms(sorted[i]),
					  .name = text_of(sorted[i], "name"),
					  .task = text_of(sorted[i], "task"),
					  .json = slice_of(json)});
	}
}

/* Those that have ended may be very many: without --all they are not even asked for. */
int remote_ps(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	static const char *const states[] = {"creating", "running", "paused", "suspended"};
	struct listing l = {.o = options, .all = json_array()};
	struct ps_list list = {.cli = cli};
	int r = l.o->since ? ps_list_parse_since(l.o->since, &l.since_ms, err) : 0;

	if (r == 0 && l.o->all)
		r = ask(link_of(cli), &l, NULL, err);
	for (size_t i = 0; r == 0 && !l.o->all && i < sizeof(states) / sizeof(states[0]); i++)
		r = ask(link_of(cli), &l, states[i], err);
	if (r == 0) {
		add_all(&list, l.all);
		r = ps_list_print(&list, err);
	}
	ps_list_done(&list);
	json_decref(l.all);
	return r;
}
