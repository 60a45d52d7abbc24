/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/changes_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/changes_names.h"
#include "cli/records.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/prefixes.h"
#include "view/file_access.h"
#include "view/reorder.h"

#define PROGRAMS_MAX 64 /* kept for one path */

struct changes_trace {
	struct changes_part part;
	char **execs; /* of the part, in full */
	size_t n_execs;
	struct view_filter filter; /* since and until */
	struct reorder *reorder;
	struct process_tree *tree; /* in step with the events: who runs in a process now */
	struct file_table *table;
	struct file_touched *touched;
	struct command_list *commands;
	struct changes_names *names;
	struct prefixes *moved; /* paths whose mark says below */
	struct map *marks;      /* path to struct changes_mark */
	struct map *programs;   /* seq of a start to its node in the tree of commands */
	struct map *of_execs;   /* exec to its own command */
	uint64_t n_events;
	bool has_files;
};

/* ---- which part ---- */

/* Execs are found in the record: the beginning of an id has to stand for one. */
struct outline {
	struct map *execs;
	int64_t first_ms, last_ms;
};

static int read_outline(
	const struct cli *cli, const char *id, struct outline *outline, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	const struct event *ev;
	int r = records_open(cli, id, &reader, err);

	while (r >= 0 && (r = reader_next(reader, &ev, err)) == 1) {
		if (ev->exec.len)
			*map_slot(outline->execs, ev->exec) = outline;
		if (!outline->first_ms)
			outline->first_ms = ev->wall_ms - ev->guest_ns / CLOCK_NS_PER_MS;
		outline->last_ms = ev->wall_ms;
	}
	if (r == 0 && reader_is_live(reader))
		outline->last_ms = clock_wall_ms();
	return r;
}

static int add_exec(struct changes_trace *trace, const struct outline *outline, struct slice start,
	struct err *err)
{
	struct slice key, found = {0};
	void *value;

	for (size_t i = 0; map_next(outline->execs, &i, &key, &value);) {
		if (key.len < start.len || memcmp(key.p, start.p, start.len) != 0)
			continue;
		if (found.len && !slice_eq(found, start))
			return err_set(err, -ENOTUNIQ,
				"'%.*s' stands for several execs: write more of the id",
				(int)start.len, start.p);
		found = key;
	}
	if (!found.len)
		return err_set(err, -ENOENT, "there is no exec '%.*s': `cloche log` lists them",
			(int)start.len, start.p);
	trace->execs = mem_grow(trace->execs, trace->n_execs + 1, sizeof(char *));
	trace->execs[trace->n_execs++] = mem_copy(found.p, found.len);
	return 0;
}

static int find_execs(struct changes_trace *trace, const struct outline *outline, struct err *err)
{
	const char *at = trace->part.execs;
	int r = 0;

	while (r == 0 && at && *at) {
		size_t len = strcspn(at, ",");

		if (len > 0)
			r = add_exec(trace, outline, (struct slice){.p = at, .len = len}, err);
		at += len + (at[len] == ',');
	}
	return r;
}

static int find_part(
	struct changes_trace *trace, const struct cli *cli, const char *id, struct err *err)
{
	struct outline outline = {.execs = map_new()};
	const struct changes_part *part = &trace->part;
	int r = read_outline(cli, id, &outline, err);

	if (r == 0)
		r = find_execs(trace, &outline, err);
	if (r == 0 && part->since)
		r = view_filter_parse_bound(
			part->since, outline.first_ms, outline.last_ms, &trace->filter.since, err);
	if (r == 0 && part->until)
		r = view_filter_parse_bound(
			part->until, outline.first_ms, outline.last_ms, &trace->filter.until, err);
	map_free(outline.execs);
	return r;
}

bool changes_trace_is_part(const struct changes_trace *trace)
{
	return trace->part.execs || trace->part.since || trace->part.until;
}

static bool is_in_part(const struct changes_trace *trace, const struct event *ev)
{
	if (!view_filter_takes(&trace->filter, ev))
		return false;
	for (size_t i = 0; i < trace->n_execs; i++)
		if (slice_is(ev->exec, trace->execs[i]))
			return true;
	return !trace->part.execs;
}

/* ---- events ---- */

static unsigned did(const struct event *ev)
{
	switch ((int)ev->kind) {
	case EVENT_FILE_OPEN:
		return (file_access_changes(ev) ? CHANGES_WRITTEN : 0) |
		       (file_access_made(ev) ? CHANGES_CREATED : 0);
	case EVENT_FILE_TRUNCATE:
		return CHANGES_WRITTEN;
	case EVENT_FILE_DELETE:
		return CHANGES_DELETED;
	case EVENT_FILE_RENAME:
		return CHANGES_MOVED;
	case EVENT_FILE_MODE:
		return CHANGES_RIGHTS;
	default:
		return CHANGES_CREATED; /* links and folders */
	}
}

static void add_program(struct changes_mark *mark, uint64_t seq, uint64_t at)
{
	for (size_t i = 0; i < mark->n_programs; i++)
		if (mark->programs[i].seq == seq)
			return;
	if (mark->n_programs >= PROGRAMS_MAX)
		return;
	mark->programs = mem_grow(mark->programs, mark->n_programs + 1, sizeof(*mark->programs));
	mark->programs[mark->n_programs++] = (struct changes_program){.seq = seq, .at = at};
}

static void mark_path(
	struct changes_trace *trace, const struct event *ev, const struct file_touch_of *of)
{
	const struct process_node *node = ev->pid ? process_tree_find(trace->tree, ev->pid) : NULL;
	struct changes_mark *mark;
	void **slot;

	if (of->path.len == 0 || of->path.p[0] != '/')
		return;
	slot = map_slot(trace->marks, of->path);
	if (!*slot)
		*slot = new0(struct changes_mark);
	mark = *slot;
	if (is_in_part(trace, ev)) {
		mark->first_in = mark->first_in ? mark->first_in : trace->n_events;
		mark->last_in = trace->n_events;
		mark->did |= of->how == FILE_TOUCH_RIGHTS ? CHANGES_RIGHTS : did(ev);
		if (node)
			add_program(mark, node->seq, trace->n_events);
	} else {
		mark->first_out = mark->first_out ? mark->first_out : trace->n_events;
		mark->last_out = trace->n_events;
	}
	if (of->how == FILE_TOUCH_CONTENT && (did(ev) & CHANGES_CREATED))
		mark->made = trace->n_events;
	if (of->below && !mark->below)
		prefixes_add(trace->moved, of->path);
	mark->below = mark->below || of->below;
}

/* What was written under another name and moved here was changed by its writers. */
static void carry_programs(struct changes_trace *trace, struct slice from, struct slice to)
{
	const struct changes_mark *source = map_find(trace->marks, from);
	struct changes_mark *mark = map_find(trace->marks, to);

	for (size_t i = 0; source && mark && i < source->n_programs; i++)
		add_program(mark, source->programs[i].seq, trace->n_events);
}

/* So was what came with a folder, which is looked up when somebody asks: there may be much in it. */
static void add_names(struct changes_trace *trace, const struct event *ev,
	const struct file_touch_of *from, const struct file_touch_of *to)
{
	if (from->path.len == 0 || to->path.len == 0)
		return;
	carry_programs(trace, from->path, to->path);
	changes_names_add(trace->names, from->path, to->path, trace->n_events);
	if (event_has(ev, exchange) && ev->exchange)
		changes_names_add(trace->names, to->path, from->path, trace->n_events);
}

static void take_ordered(struct changes_trace *trace, const struct event *ev)
{
	struct file_touch_of of[FILE_TOUCH_PATHS];
	size_t n;

	process_tree_take(trace->tree, ev);
	n = file_touch_read(ev, of);
	if (n > 0)
		file_table_take(trace->table, ev);
	trace->n_events++;
	for (size_t i = 0; i < n; i++)
		mark_path(trace, ev, &of[i]);
	if (ev->kind == EVENT_FILE_RENAME && n == FILE_TOUCH_PATHS)
		add_names(trace, ev, &of[0], &of[1]);
}

static bool says_files(const struct event *ev)
{
	for (size_t i = 0; i < ev->sources.n; i++)
		if (slice_is(ev->sources.items[i], "files"))
			return true;
	return false;
}

static void take_event(struct changes_trace *trace, const struct event *ev)
{
	file_touched_add(trace->touched, ev);
	if (ev->kind == EVENT_TRACE_STARTED && says_files(ev))
		trace->has_files = true;
	if (trace->part.no_who)
		return;
	command_list_add(trace->commands, ev);
	if (ev->kind > EVENT_DIR_CREATE && ev->kind != EVENT_TRACE_DROPPED)
		return;
	reorder_push(trace->reorder, ev);
	while ((ev = reorder_pop(trace->reorder, false)))
		take_ordered(trace, ev);
}

static void settle_commands(struct changes_trace *trace)
{
	size_t n = command_list_settle(trace->commands);

	for (size_t i = 0; i < n; i++) {
		const struct command *command = command_list_get(trace->commands, i);

		if (!command->derived)
			*map_slot(trace->of_execs, command->exec) = (void *)command;
	}
}

static void settle(struct changes_trace *trace)
{
	struct process_tree *tree;
	const struct event *ev;
	size_t n;

	while ((ev = reorder_pop(trace->reorder, true)))
		take_ordered(trace, ev);
	(void)file_table_settle(trace->table);
	settle_commands(trace);
	tree = command_list_tree(trace->commands);
	n = process_tree_settle(tree);
	for (size_t i = 0; i < n; i++) {
		struct process_node *node = process_tree_get(tree, i);
		unsigned long long seq = node->seq;

		*map_slot(trace->programs, map_int_key(&seq)) = node;
	}
}

static struct changes_trace *trace_new(const struct changes_part *part)
{
	static const struct view_filter all = {.noise = true, .internal = true};
	struct changes_trace *trace = new0(struct changes_trace);

	trace->part = *part;
	trace->filter = all;
	trace->reorder = reorder_new();
	trace->tree = process_tree_new(&all);
	trace->table = file_table_new(&all);
	trace->touched = file_touched_new();
	trace->commands = command_list_new(&all);
	trace->names = changes_names_new();
	trace->moved = prefixes_new();
	trace->marks = map_new();
	trace->programs = map_new();
	trace->of_execs = map_new();
	return trace;
}

int changes_trace_read(const struct cli *cli, const char *id, const struct changes_part *part,
	struct changes_trace **ret_trace, struct err *err)
{
	scoped(changes_trace) struct changes_trace *trace = trace_new(part);
	scoped(reader) struct reader *reader = NULL;
	const struct event *ev;
	int r = changes_trace_is_part(trace) ? find_part(trace, cli, id, err) : 0;

	if (r == 0)
		r = records_open(cli, id, &reader, err);
	while (r >= 0 && (r = reader_next(reader, &ev, err)) == 1)
		take_event(trace, ev);
	if (r < 0)
		return r;
	settle(trace);
	*ret_trace = take(&trace);
	return 0;
}

void changes_trace_free(struct changes_trace *trace)
{
	struct slice key;
	void *value;

	if (!trace)
		return;
	for (size_t i = 0; map_next(trace->marks, &i, &key, &value);) {
		free(((struct changes_mark *)value)->programs);
		free(value);
	}
	for (size_t i = 0; i < trace->n_execs; i++)
		free(trace->execs[i]);
	free(trace->execs);
	changes_names_free(trace->names);
	prefixes_free(trace->moved);
	map_free(trace->marks);
	map_free(trace->programs);
	map_free(trace->of_execs);
	command_list_free(trace->commands);
	file_touched_free(trace->touched);
	file_table_free(trace->table);
	process_tree_free(trace->tree);
	reorder_free(trace->reorder);
	free(trace);
}

/* ---- questions ---- */

bool changes_trace_has_files(const struct changes_trace *trace)
{
	return trace->has_files;
}

const struct file_touched *changes_trace_touched(const struct changes_trace *trace)
{
	return trace->touched;
}

const struct file_entry *changes_trace_find(const struct changes_trace *trace, struct slice path)
{
	return file_table_find(trace->table, path);
}

const struct slice *changes_trace_execs(const struct changes_trace *trace)
{
	return file_table_execs(trace->table);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void add_mark(struct changes_mark *all, const struct changes_mark *one)
{
	all->first_in = earlier(all->first_in, one->first_in);
	all->first_out = earlier(all->first_out, one->first_out);
	all->last_in = one->last_in > all->last_in ? one->last_in : all->last_in;
	all->last_out = one->last_out > all->last_out ? one->last_out : all->last_out;
	all->did |= one->did;
}

struct changes_mark changes_trace_mark(const struct changes_trace *trace, struct slice path)
{
	const struct changes_mark *mark = map_find(trace->marks, path);
	struct prefixes_walk walk = {.path = path};
	struct changes_mark all = {0};
	struct slice above;

	if (mark)
		all = *mark;
	while (prefixes_next(trace->moved, &walk, &above)) {
		mark = above.len < path.len ? map_find(trace->marks, above) : NULL;
		if (mark && mark->below)
			add_mark(&all, mark);
	}
	return all;
}

bool changes_trace_back(const struct changes_trace *trace, struct str *path, uint64_t *until)
{
	const struct changes_mark *mark = map_find(trace->marks, str_slice(path));
	uint64_t made = mark && mark->made < *until ? mark->made : 0;

	return changes_names_back(trace->names, made, path, until);
}

bool changes_trace_next(const struct changes_trace *trace, size_t *i, struct slice *ret_path,
	const struct changes_mark **ret_mark)
{
	void *value;

	if (!map_next(trace->marks, i, ret_path, &value))
		return false;
	*ret_mark = value;
	return true;
}

const struct process_node *changes_trace_program(const struct changes_trace *trace, uint64_t seq)
{
	unsigned long long number = seq;

	return map_find(trace->programs, map_int_key(&number));
}

const struct command *changes_trace_command(
	const struct changes_trace *trace, const struct process_node *program)
{
	const struct command *command = command_list_find(trace->commands, program);

	return command ? command : map_find(trace->of_execs, program->exec);
}
