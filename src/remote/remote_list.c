/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote_list.h"

#include <stdlib.h>
#include <string.h>

#include "remote/request.h"
#include "util/log.h"

#define TIME_LEN 19 /* "2026-11-29T14:10:02" */

void remote_list_add_line(struct str *out, const char *text)
{
	log_add_escaped(out, slice_of(text));
	str_putc(out, '\n');
}

static void add_value(struct str *cell, const json_t *value)
{
	if (json_is_string(value))
		log_add_escaped(cell, slice_of(json_string_value(value)));
	else if (json_is_integer(value))
		str_int(cell, json_integer_value(value));
	else if (json_is_boolean(value))
		str_puts(cell, json_is_true(value) ? "yes" : "no");
	for (size_t i = 0; i < json_array_size(value); i++) {
		str_puts(cell, i ? " " : "");
		add_value(cell, json_array_get(value, i));
	}
}

static void add_time(struct str *cell, const json_t *value)
{
	const char *text = json_string_value(value);

	log_add_escaped(
		cell, (struct slice){text ? text : "-", strnlen(text ? text : "-", TIME_LEN)});
}

static void add_cell(struct str *cell, const json_t *value, enum remote_list_kind kind)
{
	switch (kind) {
	case REMOTE_LIST_TEXT:
		add_value(cell, value);
		return;
	case REMOTE_LIST_TIME:
		add_time(cell, value);
		return;
	case REMOTE_LIST_LIMIT:
		if (json_integer_value(value) > 0)
			add_value(cell, value);
		else
			str_putc(cell, '-');
		return;
	case REMOTE_LIST_COUNT:
		str_int(cell, (long long)json_array_size(value));
		return;
	}
}

static void add_table(
	const struct cli *cli, const struct remote_list *list, const json_t *rows, struct str *out)
{
	const char *headings[TABLE_COLUMNS_MAX];
	struct table table = {.headings = headings};
	struct view_style style = cli_style(cli);

	for (; list->columns[table.n_columns].heading; table.n_columns++)
		headings[table.n_columns] = list->columns[table.n_columns].heading;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		struct str *cells = table_row(&table);

		for (size_t c = 0; c < table.n_columns; c++)
			add_cell(&cells[c],
				json_object_get(json_array_get(rows, i), list->columns[c].key),
				list->columns[c].kind);
	}
	table_add_text(&table, &style, out);
	table_done(&table);
}

static void add_json(struct str *out, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	str_printf(out, "%s\n", text ? text : "null");
	free(text);
}

static void add_quiet(const struct remote_list *list, const json_t *row, struct str *out)
{
	add_value(out, json_object_get(row, list->columns[0].key));
	str_putc(out, '\n');
}

static void add_line(const struct remote_list *list, const json_t *row, struct str *out)
{
	for (size_t c = 0; list->columns[c].heading; c++) {
		str_puts(out, c ? "  " : "");
		add_cell(out, json_object_get(row, list->columns[c].key), list->columns[c].kind);
	}
	str_putc(out, '\n');
}

int remote_list_print_rows(const struct cli *cli, const struct remote_list *list,
	const json_t *rows, bool goes_on, struct err *err)
{
	scoped_str struct str out = {0};

	if (cli->json && !goes_on) {
		add_json(&out, rows);
	} else if (!cli->json && !cli->jsonl && !cli->quiet && !goes_on) {
		add_table(cli, list, rows, &out);
	} else {
		for (size_t i = 0; i < json_array_size(rows); i++) {
			const json_t *row = json_array_get(rows, i);

			if (cli->json || cli->jsonl)
				add_json(&out, row);
			else if (cli->quiet)
				add_quiet(list, row, &out);
			else
				add_line(list, row, &out);
		}
	}
	return cli_print(&out, err);
}

static int take_row(void *ctx, json_t *item, struct err *err)
{
	json_array_append(ctx, item);
	return 0;
}

int remote_list_print(
	const struct cli *cli, const struct remote_list *list, const char *path, struct err *err)
{
	json_t *rows = json_array();
	int r = request_pages(link_of(cli), path ? path : list->path, take_row, rows, err);

	if (r == 0)
		r = remote_list_print_rows(cli, list, rows, false, err);
	json_decref(rows);
	return r;
}
