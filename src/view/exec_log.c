/* SPDX-License-Identifier: Apache-2.0 */
#include "view/exec_log.h"

#include <stdlib.h>

#include "util/clock.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "view/event_copy.h"

/* Columns of a text row before the command. */
#define LEFT_COLUMNS 41

struct exec_log {
	struct view_filter filter;
	struct map *open;    /* exec to its start, a struct event */
	struct event **rows; /* ends, completed by their starts */
	size_t n_rows, cap_rows;
	int64_t n_ended;
};

struct exec_log *exec_log_new(const struct view_filter *filter)
{
	struct exec_log *log = new0(struct exec_log);

	log->filter = *filter;
	log->open = map_new();
	return log;
}

void exec_log_free(struct exec_log *log)
{
	struct slice key;
	void *start;

	if (!log)
		return;
	for (size_t i = 0; map_next(log->open, &i, &key, &start);)
		free(start);
	for (size_t i = 0; i < log->n_rows; i++)
		free(log->rows[i]);
	free(log->rows);
	map_free(log->open);
	free(log);
}

static void copy_field(struct event *to, const struct event *from, enum event_field f)
{
	static const size_t sizes[] = {
		[EVENT_TYPE_int] = sizeof(event_int),
		[EVENT_TYPE_bool] = sizeof(event_bool),
		[EVENT_TYPE_text] = sizeof(event_text),
		[EVENT_TYPE_list] = sizeof(event_list),
		[EVENT_TYPE_errno] = sizeof(event_errno),
		[EVENT_TYPE_raw] = sizeof(event_raw),
	};
	size_t offset = event_field_table[f].offset;

	memcpy((char *)to + offset, (const char *)from + offset, sizes[event_field_table[f].type]);
	event_mark_field(to, f);
}

/* What gc writes for an exec that was cut off knows little: the start knows the rest. */
static struct event complete(const struct event *end, const struct event *start)
{
	struct event row = *end;
	bool has_command = event_has(end, command) || event_has(end, argv);

	for (int f = 0; start && f < EVENT_N_FIELDS; f++) {
		bool is_command = f == EVENT_F_command || f == EVENT_F_argv;

		if (event_has_field(start, (enum event_field)f) &&
			!event_has_field(end, (enum event_field)f) && !(is_command && has_command))
			copy_field(&row, start, (enum event_field)f);
	}
	return row;
}

/* Keeps a start; of an end, sets *ret_row (whose texts are the event's and *ret_start's) and says whether it is asked for. */
static bool take_event(struct exec_log *log, const struct event *ev, struct event *ret_row,
	struct event **ret_start)
{
	bool is_asked = view_filter_takes(&log->filter, ev);
	struct event *start;

	*ret_start = NULL;
	if (ev->kind == EVENT_EXEC_START) {
		void **slot = map_slot(log->open, ev->exec);

		free(*slot);
		*slot = event_copy(ev);
		return false;
	}
	if (ev->kind != EVENT_EXEC_END)
		return false;
	start = map_remove(log->open, ev->exec);
	*ret_start = start;
	*ret_row = complete(ev, start);
	log->n_ended++;
	if (!event_has(ret_row, id))
		event_set(ret_row, id, log->n_ended);
	return is_asked || (start && view_filter_takes(&log->filter, start));
}

void exec_log_add(struct exec_log *log, const struct event *ev)
{
	struct event row, *start;

	if (take_event(log, ev, &row, &start)) {
		if (log->n_rows == log->cap_rows) {
			log->cap_rows = log->cap_rows ? log->cap_rows * 2 : 16;
			log->rows = mem_grow(log->rows, log->cap_rows, sizeof(struct event *));
		}
		log->rows[log->n_rows++] = event_copy(&row);
	}
	free(start);
}

static void write_field(struct jsonw *j, const struct event *row, enum event_field f)
{
	const struct event_field_info *info = &event_field_table[f];
	const void *at = (const char *)row + info->offset;

	if (!event_has_field(row, f)) {
		jsonw_knull(j, info->name);
		return;
	}
	switch (info->type) {
	case EVENT_TYPE_int:
		jsonw_kint(j, info->name, *(const event_int *)at);
		return;
	case EVENT_TYPE_bool:
		jsonw_kbool(j, info->name, *(const event_bool *)at);
		return;
	case EVENT_TYPE_text:
		jsonw_kslice(j, info->name, *(const event_text *)at);
		return;
	case EVENT_TYPE_list:
		jsonw_klist(j, info->name, ((const event_list *)at)->items,
			((const event_list *)at)->n);
		return;
	case EVENT_TYPE_errno:
		jsonw_ktext(j, info->name, event_errno_name(*(const event_errno *)at));
		return;
	case EVENT_TYPE_raw:
		jsonw_key(j, info->name);
		jsonw_raw(j, *(const event_raw *)at);
		return;
	}
}

static void write_row(struct jsonw *j, const struct event *row)
{
	/* Always there, null where not known. */
	static const enum event_field before[] = {EVENT_F_account, EVENT_F_agent, EVENT_F_task_text,
		EVENT_F_work_item, EVENT_F_source, EVENT_F_via, EVENT_F_actor, EVENT_F_operation};
	static const enum event_field behind[] = {EVENT_F_detail, EVENT_F_cwd, EVENT_F_env_names,
		EVENT_F_user, EVENT_F_exit_code, EVENT_F_signal, EVENT_F_timed_out,
		EVENT_F_oom_killed, EVENT_F_pids_limited, EVENT_F_disk_full, EVENT_F_cpu_ms,
		EVENT_F_memory_peak_bytes, EVENT_F_rss_max_bytes, EVENT_F_threads_peak,
		EVENT_F_disk_read_bytes, EVENT_F_disk_write_bytes, EVENT_F_started_at,
		EVENT_F_duration_ms, EVENT_F_stdout_text, EVENT_F_stderr_text, EVENT_F_stdout_bytes,
		EVENT_F_stderr_bytes, EVENT_F_stdout_sha256, EVENT_F_stderr_sha256,
		EVENT_F_output_truncated, EVENT_F_labels};
	/* Only where they say something. */
	static const enum event_field more[] = {EVENT_F_terminal, EVENT_F_result,
		EVENT_F_interrupted, EVENT_F_left_running, EVENT_F_oom_kills,
		EVENT_F_cpu_throttled_ms, EVENT_F_slice_complete, EVENT_F_reason,
		EVENT_F_hosts_refused};

	jsonw_object(j);
	jsonw_kint(j, "id", row->id);
	jsonw_kint(j, "seq", (int64_t)row->seq);
	jsonw_kslice(j, "sandbox", row->sandbox);
	jsonw_kslice(j, "exec", row->exec);
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		write_field(j, row, before[i]);
	write_field(j, row, event_has(row, command) ? EVENT_F_command : EVENT_F_argv);
	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++)
		write_field(j, row, behind[i]);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (event_has_field(row, more[i]))
			write_field(j, row, more[i]);
	jsonw_object_end(j);
}

static void add_started(struct str *out, const struct event *row)
{
	char text[CLOCK_TEXT_LEN];

	/* As the row says it, where it does: started_at is ours and of fixed form. */
	clock_format(row->wall_ms, text);
	if (event_has(row, started_at) && row->started_at.len == CLOCK_TEXT_LEN - 1)
		memcpy(text, row->started_at.p, CLOCK_TEXT_LEN - 1);
	log_add_escaped(out, (struct slice){.p = text, .len = 19});
}

static void add_outcome(struct str *out, const struct event *row)
{
	if (row->kind == EVENT_EXEC_START)
		str_puts(out, "no end");
	else if (row->interrupted)
		str_puts(out, "cut off");
	else if (row->timed_out)
		str_puts(out, "timeout");
	else if (row->oom_killed)
		str_puts(out, "memory");
	else
		view_text_add_status(
			out, true, row->exit_code, event_has(row, signal) ? row->signal : 0);
}

static void add_command(struct str *out, const struct event *row)
{
	if (event_has(row, operation) && !slice_is(row->operation, "exec")) {
		log_add_escaped(out, row->operation);
		str_putc(out, ' ');
		log_add_escaped(out, row->detail);
	} else if (event_has(row, command)) {
		log_add_escaped(out, row->command);
	} else {
		view_text_add_argv(out, &row->argv);
	}
}

static void add_line(struct str *out, const struct view_style *style, const struct event *row)
{
	bool is_bad = row->kind == EVENT_EXEC_START || row->interrupted || row->timed_out ||
	              row->exit_code || (event_has(row, signal) && row->signal);
	scoped_str struct str cell = {0};

	add_started(out, row);
	add_outcome(&cell, row);
	for (size_t w = cell.len; w < 9; w++)
		str_putc(out, ' ');
	if (is_bad)
		view_text_add_color(out, style, VIEW_RED, str_slice(&cell));
	else
		str_add(out, cell.p, cell.len);
	str_reset(&cell);
	if (event_has(row, duration_ms))
		clock_add_duration(&cell, row->duration_ms);
	else
		str_putc(&cell, '-');
	for (size_t w = cell.len; w < 9; w++)
		str_putc(out, ' ');
	str_add(out, cell.p, cell.len);
	str_puts(out, slice_is(row->source, "human_takeover") ? "  * " : "    ");
	str_reset(&cell);
	add_command(&cell, row);
	view_text_add_cut(
		out, str_slice(&cell), style->columns > 60 ? style->columns - LEFT_COLUMNS : 0);
	str_putc(out, '\n');
}

void exec_log_json(struct exec_log *log, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	for (size_t i = 0; i < log->n_rows; i++)
		write_row(&j, log->rows[i]);
	jsonw_array_end(&j);
}

void exec_log_text(struct exec_log *log, const struct view_style *style, struct str *out)
{
	struct slice key;
	void *start;
	size_t n = log->n_rows;

	for (size_t i = 0; i < log->n_rows; i++)
		add_line(out, style, log->rows[i]);
	for (size_t i = 0; map_next(log->open, &i, &key, &start);) {
		if (!view_filter_takes(&log->filter, start))
			continue;
		add_line(out, style, start);
		n++;
	}
	if (n == 0)
		str_puts(out, "no execs\n");
}

bool exec_log_next_json(struct exec_log *log, const struct event *ev, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	struct event row, *start;
	bool is_row = take_event(log, ev, &row, &start);

	if (is_row)
		write_row(&j, &row);
	free(start);
	return is_row;
}

bool exec_log_next_text(struct exec_log *log, const struct event *ev,
	const struct view_style *style, struct str *out)
{
	struct event row, *start;
	bool is_row = take_event(log, ev, &row, &start);

	if (is_row)
		add_line(out, style, &row);
	free(start);
	return is_row;
}
