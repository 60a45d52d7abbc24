/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in aligned columns. The last one is cut to the terminal's width. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>

#include "util/str.h"
#include "view/view_text.h"

#define TABLE_COLUMNS_MAX 12

struct table {
	const char *const *headings; /* n_columns */
	size_t n_columns;
	struct str *cells; /* n_rows * n_columns */
	size_t n_rows;
};

/* A new row; its cells are good until the next one is added. Text put into them must be escaped already. */
struct str *table_row(struct table *table);
void table_add_text(const struct table *table, const struct view_style *style, struct str *out);
void table_done(struct table *table);

#endif
