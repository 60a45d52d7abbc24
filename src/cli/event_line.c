/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/event_line.h"

#include "util/clock.h"
#include "util/log.h"

#define TIME_AT  11 /* of the time of day in a time as text */
#define TIME_LEN 12

/* Fields that lead the line, or that say nothing in it. */
static const enum event_field left_out[] = {EVENT_F_argv, EVENT_F_argv_count, EVENT_F_argv_bytes,
	EVENT_F_path, EVENT_F_from, EVENT_F_to, EVENT_F_result, EVENT_F_command, EVENT_F_data,
	EVENT_F_env_names, EVENT_F_stdout_text, EVENT_F_stderr_text, EVENT_F_stdout_sha256,
	EVENT_F_stderr_sha256, EVENT_F_labels, EVENT_F_started_at, EVENT_F_body_sha256,
	EVENT_F_response_body_sha256};

static bool is_left_out(enum event_field field)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (left_out[i] == field)
			return true;
	return false;
}

static void add_lead(struct str *out, const struct event *ev)
{
	if (event_has(ev, argv) && ev->argv.n) {
		str_putc(out, ' ');
		view_text_add_argv(out, &ev->argv);
	} else if (event_has(ev, command)) {
		str_putc(out, ' ');
		log_add_escaped(out, ev->command);
	}
	if (event_has(ev, path)) {
		str_puts(out, event_has(ev, argv) ? " path=" : " ");
		log_add_escaped(out, ev->path);
	}
	if (event_has(ev, from)) {
		str_putc(out, ' ');
		log_add_escaped(out, ev->from);
	}
	if (event_has(ev, to)) {
		str_puts(out, " -> ");
		log_add_escaped(out, ev->to);
	}
}

static void add_value(struct str *out, const struct event_field_info *f, const void *at)
{
	switch (f->type) {
	case EVENT_TYPE_int:
		str_int(out, *(const event_int *)at);
		return;
	case EVENT_TYPE_bool:
		str_puts(out, *(const event_bool *)at ? "yes" : "no");
		return;
	case EVENT_TYPE_text:
	case EVENT_TYPE_raw:
		log_add_escaped(out, *(const event_text *)at);
		return;
	case EVENT_TYPE_list:
		view_text_add_argv(out, at);
		return;
	case EVENT_TYPE_errno:
		str_puts(out, event_errno_name(*(const event_errno *)at));
		return;
	}
}

/* What is false or empty is not worth its place. */
static bool is_worth(const struct event_field_info *f, const void *at)
{
	switch (f->type) {
	case EVENT_TYPE_bool:
		return *(const event_bool *)at;
	case EVENT_TYPE_text:
	case EVENT_TYPE_raw:
		return ((const event_text *)at)->len > 0;
	case EVENT_TYPE_list:
		return ((const struct event_list *)at)->n > 0;
	case EVENT_TYPE_int:
	case EVENT_TYPE_errno:
		return true;
	}
	return true;
}

static void add_rest(struct str *out, const struct event *ev)
{
	for (int i = 0; i < EVENT_N_FIELDS; i++) {
		const struct event_field_info *f = &event_field_table[i];
		const void *at = (const char *)ev + f->offset;

		if (!event_has_field(ev, (enum event_field)i) || is_left_out((enum event_field)i) ||
			!is_worth(f, at))
			continue;
		str_printf(out, " %s=", f->name);
		add_value(out, f, at);
	}
}

static const char *color_of(const struct event *ev)
{
	if (event_has(ev, result) || ev->kind == EVENT_SANDBOX_REFUSED ||
		ev->kind == EVENT_SANDBOX_ERROR || ev->kind == EVENT_TRACE_DROPPED ||
		ev->kind == EVENT_TRACE_BLIND || ev->kind == EVENT_NET_REFUSED ||
		ev->kind == EVENT_SECRET_MISUSE)
		return VIEW_RED;
	return event_kind_is_log(ev->kind) ? VIEW_BOLD : NULL;
}

void event_line_add(struct str *out, const struct event *ev, const struct view_style *style)
{
	scoped_str struct str head = {0}, rest = {0};
	char time[CLOCK_TEXT_LEN];
	size_t width;

	clock_format(ev->wall_ms, time);
	str_printf(&head, "%.*s ", TIME_LEN, time + TIME_AT);
	if (ev->pid)
		str_printf(&head, "%7lld  ", (long long)ev->pid);
	else
		str_puts(&head, "      -  ");
	width = view_text_width(str_slice(&head)) + strlen(event_kind_name(ev->kind));
	str_add(out, head.p, head.len);
	if (color_of(ev))
		view_text_add_color(out, style, color_of(ev), slice_of(event_kind_name(ev->kind)));
	else
		str_puts(out, event_kind_name(ev->kind));
	add_lead(&rest, ev);
	if (event_has(ev, result))
		str_printf(&rest, " %s", event_errno_name(ev->result));
	add_rest(&rest, ev);
	view_text_add_cut(
		out, str_slice(&rest), style->columns > width + 20 ? style->columns - width : 0);
	str_putc(out, '\n');
}
