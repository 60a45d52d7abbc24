/* SPDX-License-Identifier: Apache-2.0 */
/* cloche ps: which sandboxes there are. */
#include <errno.h>
#include <stdlib.h>

#include "cli/sandbox_state.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "spec/spec.h"
#include "spec/spec_parse.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "view/view_filter.h"

struct ps_options {
	bool all;
	struct spec_words labels; /* K=V */
	const char *since;
};

struct listing {
	const struct cli *cli;
	const struct ps_options *o;
	int64_t since_ms;
	struct table table;
	struct str out; /* JSON or ids */
	size_t n;
};

static int add_label(void *base, const char *value, struct err *err)
{
	struct ps_options *o = base;
	struct spec_pair pair;
	int r = spec_parse_pair(value, &pair, err);

	if (r < 0)
		return r;
	free(pair.key);
	free(pair.value);
	spec_words_add(&o->labels, value);
	return 0;
}

static int parse_since(const char *text, int64_t *ret_ms, struct err *err)
{
	int64_t now = clock_wall_ms();
	struct view_bound bound;
	int r = view_filter_parse_bound(text, now, now, &bound, err);

	if (r == 0 && bound.kind != VIEW_BOUND_WALL)
		r = err_set(err, -EINVAL, "'%s': want a clock time or a duration such as 2h", text);
	if (r < 0)
		return err_wrap(err, r, "option '--since'");
	*ret_ms = bound.value;
	return 0;
}

static bool has_label(const struct sandbox_state *s, const char *pair)
{
	const char *eq = strchr(pair, '=');
	scoped_mem char *key = mem_copy(pair, (size_t)(eq - pair));
	const char *value = json_string_value(json_object_get(sandbox_state_labels(s), key));

	return value && strcmp(value, eq + 1) == 0;
}

static int64_t created_ms(const struct sandbox_state *s)
{
	const char *text = sandbox_state_meta(s, "created_at");
	int64_t ms = 0;

	if (!text || clock_parse(text, &ms) < 0)
		return 0;
	return ms;
}

/* To go on with, or to fork. */
static bool has_files(const struct sandbox_state *s)
{
	return strcmp(s->state, "suspended") == 0 || strcmp(s->state, "kept") == 0;
}

static bool is_wanted(const struct listing *l, const struct sandbox_state *s)
{
	if (!s->is_live && !has_files(s) && !l->o->all)
		return false;
	if (l->o->since && created_ms(s) < l->since_ms)
		return false;
	for (size_t i = 0; i < l->o->labels.n; i++)
		if (!has_label(s, l->o->labels.items[i]))
			return false;
	return true;
}

static void add_json(struct str *out, const struct sandbox_state *s)
{
	char *labels = json_dumps(sandbox_state_labels(s), JSON_COMPACT);
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "id", s->entry.id);
	jsonw_ktext(&j, "name", sandbox_state_spec(s, "name"));
	jsonw_ktext(&j, "state", s->state);
	jsonw_ktext(&j, "created_at", sandbox_state_meta(s, "created_at"));
	if (sandbox_state_spec(s, "forked_from"))
		jsonw_ktext(&j, "forked_from", sandbox_state_spec(s, "forked_from"));
	jsonw_ktext(&j, "task", sandbox_state_spec(s, "task"));
	jsonw_key(&j, "labels");
	jsonw_raw(&j, slice_of(labels ? labels : "{}"));
	jsonw_kint(&j, "owner_uid", s->entry.owner);
	if (json_object_get(s->status, "execs"))
		jsonw_kint(&j, "execs", json_integer_value(json_object_get(s->status, "execs")));
	jsonw_object_end(&j);
	free(labels);
}

static void add_escaped(struct str *cell, const char *text)
{
	log_add_escaped(cell, slice_of(text ? text : ""));
}

static void add_row(struct listing *l, const struct sandbox_state *s)
{
	struct str *cells = table_row(&l->table);
	int64_t age_ms = clock_wall_ms() - created_ms(s);

	str_puts(&cells[0], s->entry.id);
	str_puts(&cells[1], s->state);
	if (created_ms(s) && age_ms >= 1000)
		clock_add_duration(&cells[2], age_ms - age_ms % 1000);
	else
		str_puts(&cells[2], created_ms(s) ? "0s" : "?");
	add_escaped(&cells[3], sandbox_state_spec(s, "name"));
	add_escaped(&cells[4], sandbox_state_spec(s, "task"));
}

static void add_sandbox(struct listing *l, const struct sandbox_state *s)
{
	if (l->cli->json || l->cli->jsonl) {
		if (l->cli->json && l->n)
			str_puts(&l->out, ",\n");
		add_json(&l->out, s);
		if (l->cli->jsonl)
			str_putc(&l->out, '\n');
	} else if (l->cli->quiet) {
		str_printf(&l->out, "%s\n", s->entry.id);
	} else {
		add_row(l, s);
	}
	l->n++;
}

static int list_all(struct listing *l, struct err *err)
{
	struct record_list list;
	int r = records_list(l->cli, &list, err);

	for (size_t i = list.n; r == 0 && i-- > 0;) {
		struct sandbox_state s;

		/* One that is gone meanwhile, or not ours, is not in the list. */
		if (!records_may_read(l->cli, &list.items[i]) ||
			sandbox_state_read(l->cli, &list.items[i], &s, NULL) < 0)
			continue;
		if (is_wanted(l, &s))
			add_sandbox(l, &s);
		sandbox_state_done(&s);
	}
	records_list_done(&list);
	return r;
}

static int print(struct listing *l, struct err *err)
{
	scoped_str struct str text = {0};
	struct view_style style = cli_style(l->cli);

	if (l->cli->json) {
		str_printf(&text, "[%s]\n", l->out.p ? l->out.p : "");
		return cli_print(&text, err);
	}
	if (l->cli->jsonl || l->cli->quiet)
		return cli_print(&l->out, err);
	table_add_text(&l->table, &style, &text);
	return cli_print(&text, err);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	static const char *const headings[] = {"ID", "STATE", "AGE", "NAME", "TASK"};
	struct listing l = {
		.cli = cli, .o = options, .table = {.headings = headings, .n_columns = 5}};
	int r = 0;

	if (l.o->since)
		r = parse_since(l.o->since, &l.since_ms, err);
	if (r == 0)
		r = list_all(&l, err);
	if (r == 0)
		r = print(&l, err);
	table_done(&l.table);
	str_done(&l.out);
	return r;
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	const struct ps_options *o = options;
	int64_t ms;

	return o->since ? parse_since(o->since, &ms, err) : 0;
}

static void done(void *options)
{
	struct ps_options *o = options;

	spec_words_done(&o->labels);
}

static const struct option table[] = {
	{"all", 'a', NULL, "those that have ended, too", OPTION_ON,
		offsetof(struct ps_options, all)},
	{"label", 0, "K=V", "only those with this label; may be given again", OPTION_CALL,
		.set = add_label},
	{"since", 0, "WHEN", "only those made since this clock time (UTC) or this long ago (2h)",
		OPTION_TEXT, offsetof(struct ps_options, since)},
	{NULL},
};
static const struct option_group groups[] = {{"Options", table}, {NULL}};

const struct verb verb_ps = {
	.name = "ps",
	.class = VERB_RUN,
	.usage = "",
	.help = "list sandboxes, newest first",
	.text = "With --quiet their ids only. State: running, paused, suspended, kept (ended, its\n"
		"files stay for forks until rm), ended, or cut: its supervisor was killed.",
	.groups = groups,
	.options_size = sizeof(struct ps_options),
	.done = done,
	.check = check,
	.run = run,
};
