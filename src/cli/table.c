/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdlib.h>

#include "util/mem.h"

#define GAP 2 /* between columns */

struct str *table_row(struct table *table)
{
	size_t used = table->n_rows * table->n_columns;

	table->cells = mem_grow(table->cells, used + table->n_columns, sizeof(struct str));
	memset(&table->cells[used], 0, table->n_columns * sizeof(struct str));
	table->n_rows++;
	return &table->cells[used];
}

static void measure(const struct table *table, size_t widths[TABLE_COLUMNS_MAX])
{
	for (size_t c = 0; c < table->n_columns; c++) {
		widths[c] = strlen(table->headings[c]);
		for (size_t r = 0; r < table->n_rows; r++) {
			size_t w =
				view_text_width(str_slice(&table->cells[r * table->n_columns + c]));

			widths[c] = w > widths[c] ? w : widths[c];
		}
	}
}

/* One line without its end: all cells but the last are padded. */
static void add_line(const struct table *table, const size_t *widths, const struct slice *cells,
	size_t columns, struct str *out)
{
	scoped_str struct str line = {0};

	for (size_t c = 0; c < table->n_columns; c++) {
		str_add(&line, cells[c].p, cells[c].len);
		for (size_t w = view_text_width(cells[c]);
			c + 1 < table->n_columns && w < widths[c] + GAP; w++)
			str_putc(&line, ' ');
	}
	view_text_add_cut(out, str_slice(&line), columns);
}

void table_add_text(const struct table *table, const struct view_style *style, struct str *out)
{
	size_t widths[TABLE_COLUMNS_MAX];
	struct slice cells[TABLE_COLUMNS_MAX];
	scoped_str struct str heading = {0};

	measure(table, widths);
	for (size_t c = 0; c < table->n_columns; c++)
		cells[c] = slice_of(table->headings[c]);
	add_line(table, widths, cells, style->columns, &heading);
	view_text_add_color(out, style, VIEW_DIM, str_slice(&heading));
	str_putc(out, '\n');
	for (size_t r = 0; r < table->n_rows; r++) {
		for (size_t c = 0; c < table->n_columns; c++)
			cells[c] = str_slice(&table->cells[r * table->n_columns + c]);
		add_line(table, widths, cells, style->columns, out);
		str_putc(out, '\n');
	}
}

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++)
		str_done(&table->cells[i]);
	free(table->cells);
	table->cells = NULL;
	table->n_rows = 0;
}
