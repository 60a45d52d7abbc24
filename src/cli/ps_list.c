/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ps_list.h"

#include <errno.h>

#include "util/clock.h"
#include "util/log.h"
#include "view/view_filter.h"

static const char *const headings[] = {"ID", "STATE", "AGE", "NAME", "TASK"};
#define N_COLUMNS (sizeof(headings) / sizeof(headings[0]))

int ps_list_parse_since(const char *text, int64_t *ret_ms, struct err *err)
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

static void add_escaped(struct str *cell, const char *text)
{
	log_add_escaped(cell, slice_of(text ? text : ""));
}

static void add_cells(struct ps_list *list, const struct ps_row *row)
{
	int64_t age_ms = clock_wall_ms() - row->created_ms;
	struct str *cells;

	list->table.headings = headings;
	list->table.n_columns = N_COLUMNS;
	cells = table_row(&list->table);
	add_escaped(&cells[0], row->id);
	add_escaped(&cells[1], row->state);
	if (row->created_ms && age_ms >= 1000)
		clock_add_duration(&cells[2], age_ms - age_ms % 1000);
	else
		str_puts(&cells[2], row->created_ms ? "0s" : "?");
	add_escaped(&cells[3], row->name);
	add_escaped(&cells[4], row->task);
}

void ps_list_add(struct ps_list *list, const struct ps_row *row)
{
	if (list->cli->json || list->cli->jsonl) {
		if (list->cli->json && list->n)
			str_puts(&list->out, ",\n");
		str_add(&list->out, row->json.p, row->json.len);
		if (list->cli->jsonl)
			str_putc(&list->out, '\n');
	} else if (list->cli->quiet) {
		str_printf(&list->out, "%s\n", row->id);
	} else {
		add_cells(list, row);
	}
	list->n++;
}

int ps_list_print(struct ps_list *list, struct err *err)
{
	scoped_str struct str text = {0};
	struct view_style style = cli_style(list->cli);

	if (list->cli->json) {
		str_printf(&text, "[%s]\n", list->out.p ? list->out.p : "");
		return cli_print(&text, err);
	}
	if (list->cli->jsonl || list->cli->quiet)
		return cli_print(&list->out, err);
	list->table.headings = headings;
	list->table.n_columns = N_COLUMNS;
	table_add_text(&list->table, &style, &text);
	return cli_print(&text, err);
}

void ps_list_done(struct ps_list *list)
{
	table_done(&list->table);
	str_done(&list->out);
}
