/* SPDX-License-Identifier: Apache-2.0 */
/* The record is read from the number on that it had come to before the exec was asked for, up to the exec's row. */
#include "server/exec_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "control/client.h"
#include "record/reader.h"
#include "server/trace_shapes.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"

#define EVENTS (1u << TRACE_SHAPES_N)
#define ALL    (EVENTS | (EVENTS - 1))

/* ---- what is asked for ---- */

static int read_name(const json_t *v, unsigned *shapes, struct err *err)
{
	const char *name = json_string_value(v);
	const struct trace_shape *shape = name ? trace_shapes_find(name) : NULL;

	if (shape)
		*shapes |= 1u << (shape - trace_shapes);
	else if (name && strcmp(name, "events") == 0)
		*shapes |= EVENTS;
	else
		return err_set(err, -EINVAL,
			"member 'trace': want true, or a list of \"processes\", \"files\", "
			"\"network\", \"commands\", \"timeline\", \"events\"");
	return 0;
}

int exec_trace_read(struct call *call, struct exec_trace *trace, struct err *err)
{
	const json_t *v = json_object_get(call->body, "trace");
	int r = 0;

	trace->max_bytes = call->once_name ? EXEC_TRACE_BYTES_KEPT : EXEC_TRACE_BYTES_MAX;
	trace->is_all = json_is_true(v);
	if (trace->is_all)
		trace->shapes = ALL;
	if (!v || json_is_null(v) || json_is_boolean(v))
		return 0;
	if (json_array_size(v) == 0)
		return read_name(NULL, &trace->shapes, err);
	for (size_t i = 0; r == 0 && i < json_array_size(v); i++)
		r = read_name(json_array_get(v, i), &trace->shapes, err);
	return r;
}

/* Those that a sandbox with these sources can tell. */
static unsigned told_by(int64_t sources)
{
	unsigned shapes = sources ? EVENTS : 0;

	for (unsigned i = 0; sources && i < TRACE_SHAPES_N; i++)
		if (!trace_shapes[i].sources || (trace_shapes[i].sources & sources))
			shapes |= 1u << i;
	return shapes;
}

static int choose(struct call *call, struct exec_trace *trace, int64_t sources, struct err *err)
{
	unsigned told = told_by(sources);

	if (trace->is_all)
		trace->shapes &= told;
	if (trace->shapes != 0 && (trace->shapes & ~told) == 0)
		return 0;
	call->code = "not_traced";
	return err_set(err, -EBADFD,
		sources ? "this sandbox's trace has not all of that: its spec left sources out"
			: "this sandbox is not traced: make one with \"trace\": true");
}

int exec_trace_begin(struct call *call, struct exec_trace *trace, int fd, struct err *err)
{
	scoped(client) struct client *client = NULL;
	json_t *status = NULL;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (own < 0)
		return err_set(err, -errno, "ask the sandbox what it traces: %m");
	client = client_adopt(own);
	r = client_ask(client, "status", slice_of(""), &status, err);
	if (r == 0) {
		trace->since = json_integer_value(json_object_get(status, "traced_since"));
		trace->from = json_integer_value(json_object_get(status, "events")) + 1;
		trace->is_blind = json_is_true(json_object_get(status, "blind"));
		r = choose(call, trace, json_integer_value(json_object_get(status, "trace")), err);
	}
	json_decref(status);
	return r;
}

/* ---- from the record ---- */

struct gathering {
	const struct exec_trace *trace;
	struct view_filter filter;
	void *views[TRACE_SHAPES_N];
	struct str events; /* a list, without its end */
	int64_t n_events, last_event;
	bool is_events_cut, has_gap, has_end;
	int64_t end; /* seq of its row */
};

static bool wants(const struct gathering *g, unsigned i)
{
	return g->trace->shapes & (1u << i);
}

static void add_event(struct gathering *g, const struct event *ev, struct slice line)
{
	if (!view_filter_takes(&g->filter, ev) || g->is_events_cut)
		return;
	g->is_events_cut = g->n_events == EXEC_TRACE_ITEMS_MAX ||
	                   g->events.len + line.len > g->trace->max_bytes;
	if (g->is_events_cut)
		return;
	str_puts(&g->events, g->n_events++ > 0 ? "," : "");
	str_add(&g->events, line.p, line.len);
	g->last_event = (int64_t)ev->seq;
}

static void look_at(struct gathering *g, const struct event *ev, struct slice line)
{
	bool is_loss = ev->kind == EVENT_TRACE_DROPPED || ev->kind == EVENT_TRACE_BLIND;
	bool is_own = slice_eq(ev->exec, g->filter.exec);

	g->has_gap |= is_loss && (is_own || ev->exec.len == 0);
	g->has_gap |= is_own && view_filter_lacks_process(ev);
	if (is_own && ev->kind == EVENT_EXEC_END) {
		g->has_end = true;
		g->end = (int64_t)ev->seq;
		g->has_gap |= event_has(ev, interrupted) ||
		              (event_has(ev, slice_complete) && !ev->slice_complete);
	}
	if (g->trace->shapes & EVENTS)
		add_event(g, ev, line);
}

static void add_to_views(struct gathering *g, const struct event *ev)
{
	for (unsigned i = 0; i < TRACE_SHAPES_N; i++)
		if (g->views[i])
			trace_shapes[i].add(g->views[i], ev);
}

static int open_at(const char *dir, int64_t seq, struct reader **ret, struct err *err)
{
	int r = reader_open(dir, ret, err);

	return r < 0 ? r : reader_skip_to(*ret, (uint64_t)seq, err);
}

/* Views tell what they see by what they know is traced. */
static int read_sources(struct gathering *g, const char *dir, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	const struct event *ev;
	int r = g->trace->since ? open_at(dir, g->trace->since, &reader, err) : 0;

	if (reader && r == 0 && (r = reader_next(reader, &ev, err)) == 1)
		add_to_views(g, ev);
	return r < 0 ? r : 0;
}

static int read_events(struct gathering *g, const char *dir, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	const struct event *ev;
	int r = open_at(dir, g->trace->from, &reader, err);

	if (r == 0)
		reader_only(reader, g->filter.exec);
	while (r >= 0 && !g->has_end && (r = reader_next(reader, &ev, err)) == 1) {
		look_at(g, ev, reader_line(reader));
		add_to_views(g, ev);
	}
	return r < 0 ? r : 0;
}

/* ---- into the answer ---- */

/* Where the next item of a list of our own writing ends, from its begin. */
static size_t item_len(const char *p, const char *end)
{
	const char *at = p;
	int depth = 0;

	for (bool is_text = false; at < end; at++) {
		if (is_text) {
			if (*at == '\\')
				at++; /* and what it stands before */
			else
				is_text = *at != '"';
			continue;
		}
		is_text = *at == '"';
		if (*at == '{' || *at == '[')
			depth++;
		else if (*at == '}' || *at == ']')
			depth--;
		if (*at == ',' && depth == 0)
			break;
	}
	return (size_t)(at - p);
}

/* Whole items of a list, as many as may be: their number, and whether that is not all. */
static int64_t cut_list(struct str *list, size_t max_bytes, bool *ret_is_cut)
{
	const char *begin = list->p + 1, *end = list->p + list->len - 1, *at = begin;
	int64_t n = 0;

	*ret_is_cut = false;
	while (at < end) {
		const char *next = at + item_len(at, end);

		*ret_is_cut = n == EXEC_TRACE_ITEMS_MAX || (size_t)(next - begin) > max_bytes;
		if (*ret_is_cut)
			break;
		n++;
		at = next < end ? next + 1 : end;
	}
	if (!*ret_is_cut)
		return n;
	list->len = (size_t)(at - list->p) - (n > 0); /* without the comma */
	str_puts(list, "]");
	return n;
}

/* Where all of it is: of events what comes behind the last one. */
static void say_cut(struct jsonw *cut, const struct gathering *g, const char *sandbox,
	const char *shape, int64_t n)
{
	scoped_str struct str rest = {0};

	str_printf(&rest, "/v1/sandboxes/%s/trace/%s?exec=%.*s&from=%lld", sandbox, shape,
		(int)g->filter.exec.len, g->filter.exec.p, (long long)g->trace->from);
	if (g->has_end)
		str_printf(&rest, "&to=%lld", (long long)g->end);
	if (strcmp(shape, "events") == 0)
		str_printf(&rest, "&cursor=%lld", (long long)g->last_event);
	jsonw_key(cut, shape);
	jsonw_object(cut);
	jsonw_kint(cut, "items", n);
	jsonw_ktext(cut, "rest", rest.p);
	jsonw_object_end(cut);
}

static void write_shapes(
	const struct gathering *g, const char *sandbox, struct jsonw *out, struct jsonw *cut)
{
	for (unsigned i = 0; i < TRACE_SHAPES_N; i++) {
		scoped_str struct str list = {0};
		bool is_cut;
		int64_t n;

		if (!g->views[i])
			continue;
		trace_shapes[i].json(g->views[i], &list);
		n = cut_list(&list, g->trace->max_bytes, &is_cut);
		jsonw_key(out, trace_shapes[i].name);
		jsonw_raw(out, str_slice(&list));
		if (is_cut)
			say_cut(cut, g, sandbox, trace_shapes[i].name, n);
	}
	if (!(g->trace->shapes & EVENTS))
		return;
	jsonw_key(out, "events");
	jsonw_array(out);
	jsonw_raw(out, str_slice(&g->events));
	jsonw_array_end(out);
	if (g->is_events_cut)
		say_cut(cut, g, sandbox, "events", g->n_events);
}

static void write_answer(
	const struct gathering *g, const char *sandbox, bool is_complete, struct str *row)
{
	scoped_str struct str cut = {0};
	struct jsonw j = jsonw_to(row), more = jsonw_to(&cut);

	row->len--; /* its end */
	j.comma = true;
	jsonw_object(&more);
	jsonw_key(&j, "trace");
	jsonw_object(&j);
	write_shapes(g, sandbox, &j, &more);
	jsonw_object_end(&j);
	jsonw_object_end(&more);
	jsonw_kbool(&j, "trace_complete", is_complete);
	if (cut.len > 2) {
		jsonw_key(&j, "trace_cut");
		jsonw_raw(&j, str_slice(&cut));
	}
	jsonw_object_end(&j);
}

void exec_trace_add(struct server *server, const struct exec_trace *trace, const char *sandbox,
	const char *exec, struct str *row)
{
	scoped_mem char *dir = mem_printf("%s/records/%s", server->state_dir, sandbox);
	struct gathering g = {.trace = trace, .filter = {.exec = slice_of(exec)}};
	struct err err = {0};
	int r;

	if (row->len < 2)
		return;
	for (unsigned i = 0; i < TRACE_SHAPES_N; i++)
		if (wants(&g, i))
			g.views[i] = trace_shapes[i].new(&g.filter);
	r = read_sources(&g, dir, &err);
	if (r == 0)
		r = read_events(&g, dir, &err);
	if (r < 0)
		log_warn("the trace of %s cannot be read: %s", exec, err.msg);
	write_answer(&g, sandbox, r == 0 && g.has_end && !g.has_gap && !trace->is_blind, row);
	for (unsigned i = 0; i < TRACE_SHAPES_N; i++)
		if (g.views[i])
			trace_shapes[i].free(g.views[i]);
	str_done(&g.events);
}
