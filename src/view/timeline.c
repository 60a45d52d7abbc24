/* SPDX-License-Identifier: Apache-2.0 */
#include "view/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "view/command_list.h"
#include "view/file_access.h"
#include "view/intern.h"
#include "view/mount_event.h"
#include "view/network_place.h"
#include "view/refused_tries.h"
#include "view/saturate.h"
#include "view/timeline_net.h"

#define LEFT_COLUMNS 25 /* of a text row before what happened */

enum row_kind {
	ROW_COMMAND,
	ROW_CHANGE,
	ROW_HOST,
	ROW_DENIED,
	ROW_REFUSED,
	ROW_MISUSED,
	ROW_LIFE,
	ROW_HINT,
	ROW_GAP,
};

static const char *const kind_names[] = {
	[ROW_COMMAND] = "command",
	[ROW_CHANGE] = "change",
	[ROW_HOST] = "host",
	[ROW_DENIED] = "denied",
	[ROW_REFUSED] = "refused",
	[ROW_MISUSED] = "misused",
	[ROW_LIFE] = "sandbox",
	[ROW_HINT] = "hint",
	[ROW_GAP] = "gap",
};

struct row {
	enum row_kind kind;
	const char *verb; /* "created", "written", ...; an event's kind for the sandbox's life */
	int64_t ns, ms, pid, count;
	uint64_t seq;
	struct slice exec, what, to; /* path, call or reason; new path */
	const struct command *command;
	bool is_net; /* net is set */
	struct timeline_net net;
};

struct timeline {
	struct view_filter filter;
	struct mount_event mounts;
	struct command_list *commands;
	struct refused_tries *tries;
	struct intern *intern;
	struct map *seen; /* to index + 1 in rows */
	struct row *rows;
	size_t n_rows, cap_rows;
	struct str key;
};

struct timeline *timeline_new(const struct view_filter *filter)
{
	struct timeline *timeline = new0(struct timeline);

	timeline->filter = *filter;
	timeline->commands = command_list_new(filter);
	timeline->tries = refused_tries_new();
	timeline->intern = intern_new();
	timeline->seen = map_new();
	return timeline;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	command_list_free(timeline->commands);
	refused_tries_free(timeline->tries);
	intern_free(timeline->intern);
	map_free(timeline->seen);
	free(timeline->rows);
	str_done(&timeline->key);
	free(timeline);
}

static struct row *new_row(struct timeline *timeline, size_t n)
{
	if (n == timeline->cap_rows) {
		timeline->cap_rows = timeline->cap_rows ? timeline->cap_rows * 2 : 64;
		timeline->rows =
			mem_grow(timeline->rows, timeline->cap_rows, sizeof(*timeline->rows));
	}
	return &timeline->rows[n];
}

static void **slot_of(struct timeline *timeline, enum row_kind kind, const char *verb,
	struct slice exec, struct slice what)
{
	str_reset(&timeline->key);
	str_putc(&timeline->key, (char)kind);
	str_puts(&timeline->key, verb);
	str_putc(&timeline->key, '\0');
	str_add(&timeline->key, exec.p, exec.len);
	str_putc(&timeline->key, '\0');
	str_add(&timeline->key, what.p, what.len);
	return map_slot(timeline->seen, str_slice(&timeline->key));
}

static struct row *note(struct timeline *timeline, const struct event *ev, enum row_kind kind,
	const char *verb, struct slice what)
{
	void **slot = slot_of(timeline, kind, verb, ev->exec, what);
	struct row *row;

	if (*slot) {
		row = &timeline->rows[(uintptr_t)*slot - 1];
		row->count++;
		if (ev->guest_ns >= row->ns)
			return row;
	} else {
		row = new_row(timeline, timeline->n_rows++);
		*slot = (void *)(uintptr_t)timeline->n_rows;
		*row = (struct row){.kind = kind, .verb = verb, .count = 1};
		row->what = intern_text(timeline->intern, what);
		row->exec = intern_text(timeline->intern, ev->exec);
	}
	row->ns = ev->guest_ns;
	row->ms = ev->wall_ms;
	row->seq = ev->seq;
	row->pid = ev->pid;
	return row;
}

static bool is_noise(const struct timeline *timeline, struct slice path)
{
	return path.len == 0 || (!timeline->filter.noise && view_filter_is_kernel_path(path));
}

static const char *verb_of(const struct event *ev)
{
	if (ev->kind == EVENT_FILE_DELETE)
		return "deleted";
	if (ev->kind == EVENT_FILE_MODE)
		return "mode";
	if (ev->kind == EVENT_DIR_CREATE || ev->kind == EVENT_FILE_LINK)
		return "created";
	if (ev->kind == EVENT_FILE_TRUNCATE)
		return "written";
	if (ev->kind != EVENT_FILE_OPEN)
		return NULL;
	if (file_access_made(ev))
		return "created";
	return file_access_changes(ev) ? "written" : NULL;
}

static void take_file(struct timeline *timeline, const struct event *ev)
{
	bool is_rename = ev->kind == EVENT_FILE_RENAME;
	struct slice path = is_rename ? ev->from : ev->path;
	const char *verb = is_rename ? "renamed" : verb_of(ev);
	struct row *row;

	if (event_has(ev, result) && ev->result) {
		if (path.len && (ev->result == EACCES || ev->result == EPERM) &&
			!event_has(ev, own_filter))
			note(timeline, ev, ROW_DENIED, "denied", path);
		return;
	}
	if (!verb || is_noise(timeline, path) || file_access_is_nowhere(ev))
		return;
	row = note(timeline, ev, ROW_CHANGE, verb, path);
	if (is_rename)
		row->to = intern_text(timeline->intern, ev->to);
}

/* Each step of the sandbox's life is a row of its own. */
static struct row *add_life(struct timeline *timeline, const struct event *ev, struct slice what)
{
	struct row *row = new_row(timeline, timeline->n_rows++);

	*row = (struct row){.kind = ROW_LIFE,
		.verb = event_kind_name(ev->kind),
		.count = 1,
		.ns = ev->guest_ns,
		.ms = ev->wall_ms,
		.seq = ev->seq,
		.pid = ev->pid};
	row->what = intern_text(timeline->intern, what);
	row->exec = intern_text(timeline->intern, ev->exec);
	return row;
}

static enum row_kind net_kind(const struct event *ev)
{
	if (ev->kind == EVENT_SECRET_MISUSE)
		return ROW_MISUSED;
	return ev->kind == EVENT_NET_REFUSED || ev->kind == EVENT_NET_DNS ? ROW_REFUSED : ROW_HOST;
}

static void take_net(struct timeline *timeline, const struct event *ev)
{
	const char *verb = timeline_net_verb(ev);
	scoped_str struct str what = {0};
	struct row *row;

	if (!verb)
		return;
	timeline_net_what(ev, &what);
	if (event_kind_is_log(ev->kind)) {
		row = add_life(timeline, ev, str_slice(&what));
		if (ev->kind != EVENT_NET_ASKED)
			return;
	} else {
		row = note(timeline, ev, net_kind(ev), verb, str_slice(&what));
	}
	if (row->is_net && ev->kind != EVENT_NET_REFUSED)
		return;
	row->is_net = true;
	row->net = timeline_net_of(timeline->intern, ev);
}

static void count_lost(struct timeline *timeline, const struct event *ev, const char *name)
{
	struct row *row = note(timeline, ev, ROW_GAP, name, ev->source_lost);

	row->count = saturate_add(row->count, ev->count > 0 ? ev->count - 1 : 0);
}

/* A sample is no step of it: there are many, and they have a view of their own. */
static bool is_life(const struct event *ev)
{
	if (ev->kind == EVENT_SANDBOX_STATS)
		return false;
	return (ev->kind >= EVENT_SANDBOX_CREATED && ev->kind <= EVENT_SANDBOX_ERROR) ||
	       ev->kind == EVENT_TRACE_CLEARED || ev->kind == EVENT_TRACE_STARTED;
}

static void take_other(struct timeline *timeline, const struct event *ev)
{
	const char *name = event_kind_name(ev->kind);

	if (ev->kind == EVENT_SANDBOX_REFUSED)
		note(timeline, ev, ROW_REFUSED, "refused", ev->call);
	else if (ev->kind == EVENT_HINT)
		note(timeline, ev, ROW_HINT, "hint", ev->advice.len ? ev->advice : ev->reason);
	else if (ev->kind == EVENT_TRACE_DROPPED)
		count_lost(timeline, ev, name);
	else if (ev->kind == EVENT_TRACE_BLIND)
		note(timeline, ev, ROW_GAP, name, ev->reason);
	else if ((ev->kind >= EVENT_NET_DNS && ev->kind <= EVENT_SECRET_MISUSE) ||
		 (ev->kind >= EVENT_NET_HELD && ev->kind <= EVENT_NET_GATEWAY))
		take_net(timeline, ev);
	else if (is_life(ev))
		(void)add_life(timeline, ev, ev->reason);
}

void timeline_add(struct timeline *timeline, const struct event *ev)
{
	command_list_add(timeline->commands, ev);
	ev = mount_event_take(&timeline->mounts, ev);
	if (!ev || refused_tries_ends(timeline->tries, ev))
		return;
	if (!view_filter_takes(&timeline->filter, ev))
		return;
	if ((ev->kind >= EVENT_FILE_OPEN && ev->kind <= EVENT_DIR_CREATE) ||
		(ev->kind == EVENT_PROCESS_EXEC && event_has(ev, result)))
		take_file(timeline, ev);
	else
		take_other(timeline, ev);
}

static int compare(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? -1 : 1;
	return left->seq < right->seq ? -1 : left->seq > right->seq;
}

/* All rows in order, the caller's to free. */
static struct row *all_rows(struct timeline *timeline, size_t *ret_n)
{
	size_t n_commands = command_list_settle(timeline->commands), n = timeline->n_rows;
	struct row *rows = new0_n(struct row, n + n_commands);

	if (n)
		memcpy(rows, timeline->rows, n * sizeof(*rows));
	for (size_t i = 0; i < n_commands; i++) {
		const struct command *command = command_list_get(timeline->commands, i);

		rows[n++] = (struct row){.kind = ROW_COMMAND,
			.verb = "command",
			.ns = command->started_ns,
			.ms = command->started_ms,
			.seq = command->seq,
			.exec = command->exec,
			.count = 1,
			.pid = command->node ? command->node->pid : 0,
			.command = command};
	}
	qsort(rows, n, sizeof(*rows), compare);
	*ret_n = n;
	return rows;
}

static void write_command(struct jsonw *j, const struct command *command)
{
	jsonw_kbool(j, "derived", command->derived);
	if (command->command.len)
		jsonw_kslice(j, "command", command->command);
	else
		jsonw_klist(j, "argv", command->argv.items, command->argv.n);
	if (command->has_ended && !command->is_signalled && !command->interrupted)
		jsonw_kint(j, "exit_code", command->exit_code);
	else
		jsonw_knull(j, "exit_code");
	if (command->is_signalled)
		jsonw_kint(j, "signal", command->signal);
	else
		jsonw_knull(j, "signal");
	if (command->has_ended)
		jsonw_kint(j, "duration_ms", command->duration_ms);
	else
		jsonw_knull(j, "duration_ms");
}

static void write_rest(struct jsonw *j, const struct row *row)
{
	bool is_path = row->kind == ROW_CHANGE || row->kind == ROW_DENIED;

	jsonw_ktext(j, row->kind == ROW_CHANGE ? "change" : "event", row->verb);
	if (row->is_net)
		timeline_net_json(j, &row->net);
	else if (is_path)
		jsonw_kslice(j, "path", row->what);
	else if (row->kind == ROW_REFUSED)
		jsonw_kslice(j, "call", row->what);
	else if (row->what.len)
		jsonw_kslice(j, row->kind == ROW_HINT ? "advice" : "reason", row->what);
	if (row->to.len)
		jsonw_kslice(j, "to", row->to);
	jsonw_kint(j, "count", row->count);
}

void timeline_json(struct timeline *timeline, struct str *out)
{
	size_t n;
	struct row *rows = all_rows(timeline, &n);
	struct jsonw j = jsonw_to(out);
	char text[CLOCK_TEXT_LEN];

	jsonw_array(&j);
	for (size_t i = 0; i < n; i++) {
		const struct row *row = &rows[i];

		jsonw_object(&j);
		jsonw_ktext(&j, "what", kind_names[row->kind]);
		clock_format(row->ms, text);
		jsonw_ktext(&j, "at", text);
		jsonw_kint(&j, "guest_ns", row->ns);
		jsonw_kint(&j, "seq", (int64_t)row->seq);
		if (row->exec.len)
			jsonw_kslice(&j, "exec", row->exec);
		if (row->pid)
			jsonw_kint(&j, "pid", row->pid);
		if (row->command)
			write_command(&j, row->command);
		else
			write_rest(&j, row);
		jsonw_object_end(&j);
	}
	jsonw_array_end(&j);
	free(rows);
}

static const char *color_of(const struct row *row)
{
	if (row->kind == ROW_DENIED || row->kind == ROW_REFUSED || row->kind == ROW_MISUSED ||
		row->kind == ROW_GAP)
		return VIEW_RED;
	if (row->command)
		return command_list_is_failed(row->command) ? VIEW_RED : VIEW_BOLD;
	return row->kind == ROW_LIFE ? VIEW_DIM : NULL;
}

static void add_what(struct str *out, const struct row *row)
{
	struct slice why;

	if (row->command) {
		command_list_add_line(out, row->command);
		if (command_list_is_failed(row->command)) {
			str_puts(out, "  (");
			view_text_add_status(out, true, row->command->exit_code,
				row->command->is_signalled ? row->command->signal : 0);
			str_putc(out, ')');
		}
		return;
	}
	if (row->kind == ROW_CHANGE || row->kind == ROW_HOST || row->kind == ROW_LIFE ||
		row->kind == ROW_GAP)
		str_printf(out, row->what.len ? "%s " : "%s", row->verb);
	log_add_escaped(out, row->what);
	if (row->to.len) {
		str_puts(out, " -> ");
		log_add_escaped(out, row->to);
	}
	why = network_place_why(row->net.rule, row->net.reason);
	if (why.len) {
		str_puts(out, " (");
		log_add_escaped(out, why);
		str_putc(out, ')');
	}
	if (row->count > 1)
		str_printf(out, " (%lld times)", (long long)row->count);
}

void timeline_text(struct timeline *timeline, const struct view_style *style, struct str *out)
{
	size_t n;
	struct row *rows = all_rows(timeline, &n);
	scoped_str struct str what = {0}, cut = {0};
	char text[CLOCK_TEXT_LEN];

	if (n == 0)
		str_puts(out, "nothing happened\n");
	for (size_t i = 0; i < n; i++) {
		const char *color = color_of(&rows[i]);

		clock_format(rows[i].ms, text);
		str_printf(out, "%.12s  %-9s  ", text + 11, kind_names[rows[i].kind]);
		str_reset(&what);
		str_reset(&cut);
		add_what(&what, &rows[i]);
		view_text_add_cut(&cut, str_slice(&what),
			style->columns > 50 ? style->columns - LEFT_COLUMNS : 0);
		if (color)
			view_text_add_color(out, style, color, str_slice(&cut));
		else
			str_add(out, cut.p, cut.len);
		str_putc(out, '\n');
	}
	free(rows);
}
