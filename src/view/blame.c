/* SPDX-License-Identifier: Apache-2.0 */
#include "view/blame.h"

#include <stdint.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/prefixes.h"
#include "view/file_access.h"
#include "view/intern.h"
#include "view/mount_event.h"
#include "view/view_filter.h"

#define SAME_MAX     64   /* rows that one more of the same is looked for in */
#define NAME_LEN_MAX 4096 /* of an old name: folders moved into each other make ever longer ones */

struct blame {
	struct intern *intern;
	struct command_list *commands;
	struct mount_event mounts;
	struct blame_row *events; /* each that changed something; a ring once it is full */
	size_t n_events, events_room, oldest;
	struct blame_row *rows;
	size_t n_rows, rows_room;
	struct slice *
		names; /* owned; behind those that were asked for, what is there now had these before */
	size_t n_names, names_room, n_asked;
	struct map *places;             /* of names: each one's, from 1 */
	struct prefixes *named, *above; /* names; and all folders above them */
	size_t work;
	bool is_cut;
};

struct blame *blame_new(void)
{
	static const struct view_filter all = {0};
	struct blame *blame = new0(struct blame);

	blame->intern = intern_new();
	blame->commands = command_list_new(&all);
	blame->places = map_new();
	blame->named = prefixes_new();
	blame->above = prefixes_new();
	return blame;
}

void blame_free(struct blame *blame)
{
	if (!blame)
		return;
	command_list_free(blame->commands);
	intern_free(blame->intern);
	for (size_t i = 0; i < blame->n_names; i++)
		free((char *)blame->names[i].p);
	map_free(blame->places);
	prefixes_free(blame->named);
	prefixes_free(blame->above);
	free(blame->events);
	free(blame->rows);
	free(blame->names);
	free(blame);
}

const char *blame_word(enum blame_change change)
{
	static const char *const words[BLAME_N_CHANGES] = {
		[BLAME_CREATED] = "created",
		[BLAME_WRITTEN] = "written",
		[BLAME_RENAMED] = "renamed",
		[BLAME_DELETED] = "deleted",
		[BLAME_MODE] = "mode",
	};

	return words[change];
}

/* ---- what is kept ---- */

static void add_name(struct blame *blame, struct slice path)
{
	void **place = map_slot(blame->places, path);

	if (*place)
		return;
	if (blame->n_names == blame->names_room) {
		blame->names_room = blame->names_room ? blame->names_room * 2 : 16;
		blame->names = mem_grow(blame->names, blame->names_room, sizeof(struct slice));
	}
	blame->names[blame->n_names++] =
		(struct slice){.p = mem_copy(path.p, path.len), .len = path.len};
	*place = (void *)(uintptr_t)blame->n_names;
	prefixes_add(blame->named, path);
	prefixes_add_all(blame->above, path);
}

void blame_ask(struct blame *blame, struct slice path)
{
	add_name(blame, path);
	blame->n_asked = blame->n_names;
}

static void add_row(struct blame_row **rows, size_t *n, size_t *room, const struct blame_row *row)
{
	if (*n == *room) {
		*room = *room ? *room * 2 : 64;
		*rows = mem_grow(*rows, *room, sizeof(struct blame_row));
	}
	(*rows)[(*n)++] = *row;
}

/* Where there are too many, the newest are kept: what is there now comes from them. */
static void add_event(struct blame *blame, const struct blame_row *event)
{
	if (blame->n_events < BLAME_EVENTS_MAX) {
		add_row(&blame->events, &blame->n_events, &blame->events_room, event);
		return;
	}
	blame->events[blame->oldest] = *event;
	blame->oldest = (blame->oldest + 1) % BLAME_EVENTS_MAX;
	blame->is_cut = true;
}

/* false: it changed nothing. */
static bool classify(const struct event *ev, struct blame_row *row)
{
	row->path = ev->path;
	switch ((int)ev->kind) {
	case EVENT_FILE_OPEN:
		row->change = file_access_made(ev) ? BLAME_CREATED : BLAME_WRITTEN;
		return file_access_made(ev) || file_access_changes(ev);
	case EVENT_DIR_CREATE:
		row->change = BLAME_CREATED;
		return true;
	case EVENT_FILE_LINK:
		row->change = BLAME_CREATED;
		row->from = ev->target;
		return true;
	case EVENT_FILE_RENAME:
		row->change = BLAME_RENAMED;
		row->path = ev->to;
		row->from = ev->from;
		return ev->from.len > 0;
	case EVENT_FILE_DELETE:
		row->change = BLAME_DELETED;
		return true;
	case EVENT_FILE_TRUNCATE:
		row->change = BLAME_WRITTEN;
		return true;
	case EVENT_FILE_MODE:
		row->change = BLAME_MODE;
		return true;
	}
	return false;
}

void blame_add(struct blame *blame, const struct event *ev)
{
	static const struct view_filter all = {0};
	struct blame_row row = {.pid = ev->pid,
		.wall_ms = ev->wall_ms,
		.guest_ns = ev->guest_ns,
		.seq = (uint64_t)ev->seq,
		.first_seq = (uint64_t)ev->seq,
		.times = 1};

	command_list_add(blame->commands, ev);
	ev = mount_event_take(&blame->mounts, ev);
	if (!ev || ev->kind < EVENT_FILE_OPEN || ev->kind > EVENT_DIR_CREATE ||
		!view_filter_takes(&all, ev) || file_access_is_nowhere(ev) ||
		(event_has(ev, result) && ev->result != 0) || !classify(ev, &row) ||
		row.path.len == 0)
		return;
	row.path = intern_text(blame->intern, row.path);
	row.from = intern_text(blame->intern, row.from);
	row.exec = intern_text(blame->intern, ev->exec);
	add_event(blame, &row);
	if (ev->kind == EVENT_FILE_RENAME && event_has(ev, exchange) && ev->exchange) {
		struct slice to = row.path;

		row.path = row.from;
		row.from = to;
		add_event(blame, &row);
	}
}

/* ---- back from the end ---- */

static int by_time(const void *a, const void *b)
{
	const struct blame_row *x = a, *y = b;

	if (x->guest_ns != y->guest_ns)
		return x->guest_ns < y->guest_ns ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static bool is_among(const struct blame *blame, size_t n, struct slice path)
{
	struct prefixes_walk walk = {.path = path};
	struct slice one;

	while (prefixes_next(blame->named, &walk, &one)) {
		size_t place = (size_t)(uintptr_t)map_find(blame->places, one);

		if (place > 0 && place <= n)
			return true;
	}
	return false;
}

static bool is_asked(const struct blame *blame, struct slice path)
{
	return is_among(blame, blame->n_names, path);
}

static void add_alias(struct blame *blame, struct slice path)
{
	if (is_among(blame, blame->n_asked, path) || map_find(blame->places, path))
		return; /* is found as it is, and whatever moves the folder above moves it too */
	if (blame->n_names - blame->n_asked < BLAME_ALIASES_MAX && path.len <= NAME_LEN_MAX)
		add_name(blame, path);
	else
		blame->is_cut = true;
}

/* Each name costs a look, and those made their length: whoever is recorded chooses both. */
static bool may_work(struct blame *blame, size_t bytes)
{
	blame->work += 1 + bytes / 16;
	if (blame->work <= BLAME_WORK_MAX)
		return true;
	blame->is_cut = true;
	return false;
}

static bool is_full(struct blame *blame)
{
	if (blame->n_names - blame->n_asked < BLAME_ALIASES_MAX)
		return false;
	blame->is_cut = true;
	return true;
}

/* Whether a name lies at or below a path: what moved that, moved the name. */
static bool is_above(struct blame *blame, struct slice path)
{
	if (!prefixes_may_have(blame->above, path))
		return false;
	for (size_t i = 0; i < blame->n_names && may_work(blame, 0); i++)
		if (path_is_beneath(blame->names[i], path))
			return true;
	return false;
}

/* Names below the new one had others below the old one. */
static void follow_below(struct blame *blame, const struct blame_row *event)
{
	size_t n = blame->n_names;

	for (size_t i = 0; i < n && may_work(blame, 0); i++) {
		struct slice name = blame->names[i];
		scoped_str struct str before = {0};

		if (name.len <= event->path.len || !path_is_beneath(name, event->path))
			continue;
		if (is_full(blame) || !may_work(blame, event->from.len + name.len))
			return;
		str_add(&before, event->from.p, event->from.len);
		str_add(&before, name.p + event->path.len, name.len - event->path.len);
		add_alias(blame, str_slice(&before));
	}
}

/* What was renamed: names that lie at or below the new one had others before. */
static bool follow_back(struct blame *blame, const struct blame_row *event)
{
	bool is_ours = is_asked(blame, event->path) || is_asked(blame, event->from) ||
	               is_above(blame, event->from);

	if (is_asked(blame, event->path))
		add_alias(blame, event->from);
	if (!is_above(blame, event->path))
		return is_ours;
	follow_below(blame, event);
	return true;
}

/* Before it was made, the name was another file's. */
static void forget(struct blame *blame, struct slice path)
{
	size_t place = (size_t)(uintptr_t)map_find(blame->places, path);
	struct slice *name, *last;

	if (place <= blame->n_asked)
		return;
	name = &blame->names[place - 1];
	last = &blame->names[blame->n_names - 1];
	prefixes_remove(blame->named, path);
	prefixes_remove_all(blame->above, path);
	*map_slot(blame->places, *last) = (void *)(uintptr_t)place;
	(void)map_remove(blame->places, path); /* its value is no memory */
	free((char *)name->p);
	*name = *last;
	blame->n_names--;
}

static void keep(struct blame *blame, const struct blame_row *event)
{
	size_t first = blame->n_rows > SAME_MAX ? blame->n_rows - SAME_MAX : 0;

	for (size_t i = blame->n_rows; i-- > first;) {
		struct blame_row *row = &blame->rows[i];

		if (row->change == event->change && row->pid == event->pid &&
			slice_eq(row->path, event->path) && slice_eq(row->from, event->from) &&
			slice_eq(row->exec, event->exec)) {
			row->first_seq = event->seq;
			row->times++;
			return;
		}
	}
	add_row(&blame->rows, &blame->n_rows, &blame->rows_room, event);
}

/* ---- who ---- */

/* Nodes by process, one behind the other in the order of their starts; commands by exec. */
struct known {
	const struct process_node **nodes;
	size_t n_nodes;
	struct map *execs;
};

static int by_pid(const void *a, const void *b)
{
	const struct process_node *x = *(const struct process_node *const *)a;
	const struct process_node *y = *(const struct process_node *const *)b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->started_ns > y->started_ns) - (x->started_ns < y->started_ns);
}

static void known_init(struct known *known, const struct blame *blame, size_t n_commands)
{
	struct process_tree *tree = command_list_tree(blame->commands);

	known->n_nodes = process_tree_settle(tree);
	known->nodes = mem_zero(known->n_nodes + 1, sizeof(struct process_node *));
	for (size_t i = 0; i < known->n_nodes; i++)
		known->nodes[i] = process_tree_get(tree, i);
	qsort(known->nodes, known->n_nodes, sizeof(struct process_node *), by_pid);
	known->execs = map_new();
	for (size_t i = n_commands; i-- > 0;) { /* the first of an exec's is kept */
		const struct command *command = command_list_get(blame->commands, i);

		if (!command->derived)
			*map_slot(known->execs, command->exec) = (void *)command;
	}
}

static void known_done(struct known *known)
{
	free(known->nodes);
	map_free(known->execs);
}

/* The last program that the process had started by then; NULL where none is known. */
static const struct process_node *find_node(const struct known *known, const struct blame_row *row)
{
	size_t low = 0, high = known->n_nodes;

	while (low < high) { /* the first that is beyond */
		size_t mid = low + (high - low) / 2;
		const struct process_node *node = known->nodes[mid];

		if (node->pid < row->pid ||
			(node->pid == row->pid && node->started_ns <= row->guest_ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && known->nodes[low - 1]->pid == row->pid ? known->nodes[low - 1] : NULL;
}

static void find_who(struct blame *blame, size_t n_commands)
{
	struct known known;

	known_init(&known, blame, n_commands);
	for (size_t i = 0; i < blame->n_rows; i++) {
		struct blame_row *row = &blame->rows[i];

		row->node = find_node(&known, row);
		if (row->node)
			row->command = command_list_find(blame->commands, row->node);
		if (!row->command)
			row->command = map_find(known.execs, row->exec);
	}
	known_done(&known);
}

size_t blame_settle(struct blame *blame)
{
	if (blame->n_events > 0)
		qsort(blame->events, blame->n_events, sizeof(struct blame_row), by_time);
	for (size_t i = blame->n_events; i-- > 0;) {
		const struct blame_row *event = &blame->events[i];
		bool is_ours = false;

		if (event->change == BLAME_RENAMED)
			is_ours = follow_back(blame, event);
		else
			is_ours = is_asked(blame, event->path);
		if (is_ours)
			keep(blame, event);
		if (is_ours && event->change == BLAME_CREATED)
			forget(blame, event->path);
	}
	if (blame->n_rows == 0)
		return 0;
	find_who(blame, command_list_settle(blame->commands));
	return blame->n_rows;
}

bool blame_is_cut(const struct blame *blame)
{
	return blame->is_cut;
}

const struct blame_row *blame_get(const struct blame *blame, size_t i)
{
	return &blame->rows[i];
}
