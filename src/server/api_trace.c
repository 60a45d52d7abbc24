/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a sandbox: its events page by page, and the shapes that they fold into. All are read from the record,
 * from where the trace was last cleared on. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/lines.h"
#include "record/reader.h"
#include "server/api.h"
#include "server/launcher_ask.h"
#include "server/page.h"
#include "server/trace_shapes.h"
#include "util/clock.h"
#include "util/mem.h"
#include "view/network_body.h"

/* ---- what part of it ---- */

/* The seq of the last trace.cleared; 0: none. */
static int64_t find_clear(const char *dir)
{
	scoped_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped(event_line) struct event_line *parsed = NULL;
	struct lines lines = {.fd = -1};
	struct slice line;
	int64_t seq = 0;

	if (dirfd < 0 || lines_open(&lines, dirfd, "log.jsonl") < 0)
		return 0;
	while (lines_next(&lines, &line) == 1) {
		const struct event *ev;

		if (!memmem(line.p, line.len, "\"trace.cleared\"", 15) ||
			event_json_read(line, &parsed, NULL) < 0)
			continue;
		ev = event_json_get(parsed);
		if (ev->kind == EVENT_TRACE_CLEARED)
			seq = (int64_t)ev->seq;
	}
	lines_done(&lines);
	return seq;
}

static int read_bound(const struct call *call, const char *name, int64_t start_ms,
	struct view_bound *ret, struct err *err)
{
	const char *text = call_query(call, name);
	int r = text ? view_filter_parse_bound(text, start_ms, clock_wall_ms(), ret, err) : 0;

	return r < 0 ? err_wrap(err, r, "parameter '%s'", name) : 0;
}

static int64_t created_ms(const struct reader *reader)
{
	struct slice text = reader_meta(reader);
	json_t *meta = json_loadb(text.p ? text.p : "", text.len, 0, NULL);
	const char *at = json_string_value(json_object_get(meta, "created_at"));
	int64_t ms = 0;

	if (at)
		(void)clock_parse(at, &ms); /* of our own writing; else from 1970 on */
	json_decref(meta);
	return ms;
}

struct part {
	struct reader *reader;
	struct view_filter filter;
};

static int open_part(struct call *call, struct part *part, struct err *err)
{
	scoped_mem char *dir = NULL;
	const char *id = NULL, *exec = call_query(call, "exec");
	int64_t start_ms;
	int r = api_sandbox_id(call, &id, NULL, err);

	*part = (struct part){.filter.exec = slice_of(exec ? exec : "")};
	if (r < 0)
		return r;
	dir = mem_printf("%s/records/%s", call->server->state_dir, id);
	r = reader_open(dir, &part->reader, err);
	if (r < 0)
		return r;
	if (exec)
		reader_only(part->reader, slice_of(exec));
	part->filter.since =
		(struct view_bound){.kind = VIEW_BOUND_SEQ, .value = find_clear(dir) + 1};
	start_ms = created_ms(part->reader);
	r = read_bound(call, "from", start_ms, &part->filter.since, err);
	if (r == 0)
		r = read_bound(call, "to", start_ms, &part->filter.until, err);
	if (r == 0)
		r = call_query_bool(call, "noise", &part->filter.noise, err);
	if (r == 0)
		r = call_query_bool(call, "internal", &part->filter.internal, err);
	if (r < 0)
		reader_free(part->reader);
	return r;
}

/* ---- shapes ---- */

static int fold(struct call *call, const struct part *part, const struct trace_shape *shape,
	struct err *err)
{
	void *view = shape->new (&part->filter);
	bool is_traced = shape->sources == 0;
	const struct event *ev;
	int r;

	while ((r = reader_next(part->reader, &ev, err)) == 1) {
		is_traced |= ev->kind == EVENT_TRACE_STARTED || ev->kind == EVENT_TRACE_BLIND;
		shape->add(view, ev);
	}
	if (r == 0 && !is_traced) {
		call->code = "not_traced";
		r = err_set(err, -EBADFD, "this sandbox is not traced");
	}
	if (r == 0) {
		str_puts(&call->out, "{\"items\":");
		shape->json(view, &call->out);
		str_puts(&call->out, ",\"next_cursor\":null}");
	}
	shape->free(view);
	return r;
}

int api_trace_shape(struct call *call, struct err *err)
{
	static const char *const names[] = {"from", "to", "exec", "noise", "internal", NULL};
	const struct trace_shape *shape = trace_shapes_find(strrchr(call->path, '/') + 1);
	struct part part = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = open_part(call, &part, err);
	if (r < 0)
		return r;
	r = fold(call, &part, shape, err);
	reader_free(part.reader);
	return r;
}

/* ---- events ---- */

/* After the cursor, which is the seq of the last one told. */
static int add_events(struct page *page, const struct part *part, struct err *err)
{
	const struct event *ev;
	int r = 1;

	while (page->n < page->limit && (r = reader_next(part->reader, &ev, err)) == 1)
		if ((int64_t)ev->seq > page->cursor && view_filter_takes(&part->filter, ev))
			page_add(page, reader_line(part->reader), (int64_t)ev->seq);
	return r < 0 ? r : 0;
}

int api_trace_events(struct call *call, struct err *err)
{
	static const char *const names[] = {
		"from", "to", "exec", "noise", "internal", "limit", "cursor", NULL};
	struct page page = {0};
	struct part part = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = open_part(call, &part, err);
	if (r < 0)
		return r;
	r = page_begin(&page, call, true, err);
	if (r == 0 && page.cursor > 0)
		r = reader_skip_to(part.reader, (uint64_t)page.cursor + 1, err);
	if (r == 0)
		r = add_events(&page, &part, err);
	reader_free(part.reader);
	if (r == 0)
		page_end(&page);
	return r;
}

/* ---- what lies beside the events ---- */

int api_blob(struct call *call, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	scoped_mem char *dir = NULL;
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	if (r < 0)
		return r;
	dir = mem_printf("%s/records/%s", call->server->state_dir, id);
	r = reader_open(dir, &reader, err);
	if (r < 0)
		return r;
	r = reader_blob(reader, slice_of(call->params[1]), NETWORK_BODY_MAX, &call->out);
	if (r == -ENOENT || r == -EINVAL)
		return err_set(err, -ENOENT, "the record of %s has no blob '%s' (any more)", id,
			call->params[1]);
	if (r == -EBADMSG)
		return err_set(err, -EBADFD, "what is kept of blob '%s' is not what it was",
			call->params[1]);
	call->status = 200; /* it may be empty */
	call->type = "application/octet-stream";
	return r < 0 ? err_set(err, r, "read blob '%s': %m", call->params[1]) : 0;
}

/* ---- a new start ---- */

int api_trace_clear(struct call *call, struct err *err)
{
	struct launcher_question clear = {
		.request = "clear", .key = "actor", .value = call->caller.actor};
	int r = api_sandbox_id(call, &clear.sandbox, NULL, err);

	return r < 0 ? r : launcher_ask_supervisor(call, &clear, NULL, err);
}
