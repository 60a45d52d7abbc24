/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fold.h"
#include "cli/fold_merge.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define REDRAW_MS 250 /* between two drawings on a terminal */
#define HOME      "\033[H\033[2J"

struct folding {
	const struct cli *cli;
	const struct fold *fold;
	const struct source_ids *ids;
	void **views; /* one a record */
	bool *traced; /* likewise: what the view needs was watched */
};

static void add_element(struct str *out, const json_t *element, const char *sandbox)
{
	char *text = json_dumps(element, JSON_COMPACT | JSON_ENCODE_ANY);

	if (!text)
		return;
	if (sandbox && json_is_object(element)) {
		struct jsonw j = jsonw_to(out);

		jsonw_object(&j);
		jsonw_ktext(&j, "sandbox", sandbox);
		if (text[1] != '}')
			str_putc(out, ',');
		str_puts(out, text + 1);
	} else {
		str_puts(out, text);
	}
	free(text);
}

int fold_add_lines(struct str *out, struct slice list, const char *sandbox, struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(list.p ? list.p : "", list.len, JSON_ALLOW_NUL, &why);

	if (!json_is_array(root)) {
		json_decref(root);
		return err_set(err, -EBADMSG, "the view is no list: %s", why.text);
	}
	for (size_t i = 0; i < json_array_size(root); i++) {
		add_element(out, json_array_get(root, i), sandbox);
		str_putc(out, '\n');
	}
	json_decref(root);
	return 0;
}

/* What is printed of one sandbox: its JSON as lines. */
static int add_json_of(const struct folding *f, size_t i, struct str *lines, struct err *err)
{
	scoped_str struct str list = {0};

	f->fold->json(f->views[i], &list);
	return fold_add_lines(
		lines, str_slice(&list), f->ids->n > 1 ? f->ids->items[i] : NULL, err);
}

/* Text of one sandbox with its name before each line. */
static void add_text_of(const struct folding *f, size_t i, struct str *lines)
{
	struct view_style style = cli_style(f->cli);
	scoped_str struct str text = {0};
	const char *line;
	char *rest;

	f->fold->text(f->views[i], &style, &text);
	for (rest = text.p; rest && *rest && (line = strsep(&rest, "\n"));)
		str_printf(lines, "%s %s\n", f->ids->items[i], line);
}

/* Several sandboxes in the order of their elements' times. */
static int add_merged(const struct folding *f, struct str *out, struct err *err)
{
	scoped(fold_merge) struct fold_merge *merge = fold_merge_new();
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->ids->n; i++) {
		scoped_str struct str json = {0}, text = {0};

		r = add_json_of(f, i, &json, err);
		if (!f->cli->json && !f->cli->jsonl)
			add_text_of(f, i, &text);
		if (r == 0)
			fold_merge_add(merge, &json, text.p ? &text : &json);
	}
	if (r == 0)
		fold_merge_lines(merge, out);
	return r;
}

/* One list of all records' elements, each naming its sandbox. */
static int add_json(const struct folding *f, struct str *out, struct err *err)
{
	scoped_str struct str lines = {0};
	int r = 0;

	if (f->ids->n == 1 && !f->cli->jsonl) {
		f->fold->json(f->views[0], out);
		str_putc(out, '\n');
		return 0;
	}
	if (f->ids->n > 1 && f->fold->is_timeline)
		r = add_merged(f, &lines, err);
	else
		for (size_t i = 0; r == 0 && i < f->ids->n; i++)
			r = add_json_of(f, i, &lines, err);
	if (r < 0 || f->cli->jsonl) {
		str_add(out, lines.p, lines.len);
		return r;
	}
	for (size_t i = 0; i + 1 < lines.len; i++)
		if (lines.p[i] == '\n')
			lines.p[i] = ',';
	str_putc(out, '[');
	str_add(out, lines.p, lines.len ? lines.len - 1 : 0);
	str_puts(out, "]\n");
	return 0;
}

static int add_text(const struct folding *f, struct str *out, struct err *err)
{
	struct view_style style = cli_style(f->cli);

	if (f->ids->n > 1 && f->fold->is_timeline)
		return add_merged(f, out, err);
	for (size_t i = 0; i < f->ids->n; i++) {
		if (f->ids->n > 1)
			str_printf(out, "%s%s:\n", i ? "\n" : "", f->ids->items[i]);
		f->fold->text(f->views[i], &style, out);
	}
	return 0;
}

static int print(const struct folding *f, bool redraw, struct err *err)
{
	scoped_str struct str out = {0};
	int r = 0;

	if (redraw)
		str_puts(&out, HOME);
	if (f->cli->json || f->cli->jsonl)
		r = add_json(f, &out, err);
	else
		r = add_text(f, &out, err);
	return r < 0 ? r : cli_print(&out, err);
}

/* Whether the event says that what the view needs is watched from here on. */
static bool is_start(const struct folding *f, const struct event *ev)
{
	if (ev->kind != EVENT_TRACE_STARTED)
		return false;
	for (size_t i = 0; f->fold->needs_source && i < ev->sources.n; i++)
		if (slice_is(ev->sources.items[i], f->fold->needs_source))
			return true;
	return !f->fold->needs_source;
}

/* Takes in all there is. Returns how many events that were. */
static int take_all(const struct folding *f, struct source *source, struct err *err)
{
	const struct event *ev;
	struct slice line;
	size_t i;
	int r, n = 0;

	while ((r = source_next(source, &ev, &line, &i, err)) == 1) {
		f->fold->add(f->views[i], ev);
		f->traced[i] = f->traced[i] || is_start(f, ev);
		n = 1;
	}
	return r < 0 ? r : n;
}

static int follow(const struct folding *f, struct source *source, struct err *err)
{
	bool redraw = !f->cli->json && !f->cli->jsonl && isatty(1), changed = true;
	int64_t drawn_ns = 0;

	do {
		int r = take_all(f, source, err);

		if (r < 0)
			return r;
		changed = changed || r;
		if (redraw && changed && clock_mono_ns() - drawn_ns > REDRAW_MS * CLOCK_NS_PER_MS) {
			r = print(f, true, err);
			if (r < 0)
				return r;
			drawn_ns = clock_mono_ns();
			changed = false;
		}
	} while (source_wait(source));
	return print(f, redraw, err);
}

static int not_traced(const struct folding *f, const char *id, struct err *err)
{
	if (f->fold->needs_source)
		return err_set(err, -ENODATA,
			"the %s of sandbox %s was not watched: it has none, or tracing leaves it "
			"out; `cloche show %s` says which",
			f->fold->needs_source, id, id);
	return err_set(err, -ENODATA,
		"sandbox %s was not traced: `cloche create --trace` does, and `cloche show %s` "
		"says why where it was asked for",
		id, id);
}

static int check_traced(const struct folding *f, struct err *err)
{
	bool is_needed = f->fold->needs_trace || f->fold->needs_source;

	for (size_t i = 0; is_needed && i < f->ids->n; i++)
		if (!f->traced[i])
			return not_traced(f, f->ids->items[i], err);
	return 0;
}

static void *open_view(const struct folding *f, const struct source *source, size_t i)
{
	void *view = f->fold->new (source_filter(source, i));

	if (f->fold->open)
		f->fold->open(view, source_feed(source, i));
	return view;
}

static int run(const struct folding *f, const struct source_options *o, struct err *err)
{
	scoped(source) struct source *source = NULL;
	int r;

	r = source_open(f->cli, o, f->ids, &source, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->ids->n; i++)
		f->views[i] = open_view(f, source, i);
	if (o->follow) {
		r = follow(f, source, err);
	} else {
		r = take_all(f, source, err);
		r = r < 0 ? r : source_finish(source, err);
		r = r < 0 ? r : check_traced(f, err);
		r = r < 0 ? r : print(f, false, err);
	}
	for (size_t i = 0; i < f->ids->n; i++)
		f->fold->free(f->views[i]);
	return r;
}

int fold_run(const struct cli *cli, const struct fold *fold, const struct source_options *o,
	char **args, size_t n_args, struct err *err)
{
	struct source_ids ids;
	struct folding f = {.cli = cli, .fold = fold, .ids = &ids};
	int r;

	r = source_find(cli, o, args, n_args, &ids, err);
	if (r == 0) {
		f.views = new0_n(void *, ids.n);
		f.traced = new0_n(bool, ids.n);
		r = run(&f, o, err);
		free(f.views);
		free(f.traced);
	}
	source_ids_done(&ids);
	return r;
}
