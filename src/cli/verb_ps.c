/* SPDX-License-Identifier: Apache-2.0 */
/* cloche ps: which sandboxes there are. */
#include <errno.h>
#include <stdlib.h>

#include "cli/ps_list.h"
#include "cli/sandbox_state.h"
#include "cli/verb.h"
#include "cli/verb_options.h"
#include "spec/spec.h"
#include "spec/spec_parse.h"
#include "util/clock.h"
#include "util/jsonw.h"

struct listing {
	const struct ps_options *o;
	int64_t since_ms;
	struct ps_list list;
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
	return source_has_labels(sandbox_state_labels(s), &l->o->labels);
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

static void add_sandbox(struct listing *l, const struct sandbox_state *s)
{
	scoped_str struct str json = {0};
	bool is_json = l->list.cli->json || l->list.cli->jsonl;

	if (is_json)
		add_json(&json, s);
	ps_list_add(&l->list, &(struct ps_row){.id = s->entry.id,
				      .state = s->state,
				      .created_ms = created_ms(s),
				      .name = sandbox_state_spec(s, "name"),
				      .task = sandbox_state_spec(s, "task"),
				      .json = str_slice(&json)});
}

static int list_all(struct listing *l, struct err *err)
{
	struct record_list list;
	int r = records_list(l->list.cli, &list, err);

	for (size_t i = list.n; r == 0 && i-- > 0;) {
		struct sandbox_state s;

		/* One that is gone meanwhile, or not ours, is not in the list. */
		if (!records_may_read(l->list.cli, &list.items[i]) ||
			sandbox_state_read(l->list.cli, &list.items[i], &s, NULL) < 0)
			continue;
		if (is_wanted(l, &s))
			add_sandbox(l, &s);
		sandbox_state_done(&s);
	}
	records_list_done(&list);
	return r;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct listing l = {.o = options, .list = {.cli = cli}};
	int r = 0;

	if (l.o->since)
		r = ps_list_parse_since(l.o->since, &l.since_ms, err);
	if (r == 0)
		r = list_all(&l, err);
	if (r == 0)
		r = ps_list_print(&l.list, err);
	ps_list_done(&l.list);
	return r;
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	const struct ps_options *o = options;
	int64_t ms;

	return o->since ? ps_list_parse_since(o->since, &ms, err) : 0;
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
