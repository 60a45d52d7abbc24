/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of one width each, so that a line can be printed before the next is known. */
#include "util/clock.h"
#include "view/stats_internal.h"

#define TIME_WIDTH 8

static const struct column {
	const char *heading;
	enum stats_figure figure;
	unsigned width;
	void (*add)(struct str *out, int64_t value);
} columns[] = {
	{"CPU", STATS_CPU_MS, 9, clock_add_duration},
	{"MEMORY", STATS_MEMORY, 10, view_text_add_bytes},
	{"RESIDENT", STATS_RSS, 10, view_text_add_bytes},
	{"PROCESSES", STATS_PROCESSES, 10, view_text_add_count},
	{"READ", STATS_DISK_READ, 10, view_text_add_bytes},
	{"WRITTEN", STATS_DISK_WRITE, 10, view_text_add_bytes},
	{"OUT", STATS_OUT, 10, view_text_add_bytes},
	{"IN", STATS_IN, 10, view_text_add_bytes},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void add_right(struct str *out, struct slice text, size_t width)
{
	for (size_t w = text.len; w < width; w++)
		str_putc(out, ' ');
	str_add(out, text.p, text.len);
}

void stats_text_add_heading(struct str *out, const struct view_style *style)
{
	scoped_str struct str line = {0};

	str_puts(&line, "TIME    ");
	add_right(&line, slice_of("CPU%"), 8);
	for (size_t i = 0; i < N_COLUMNS; i++)
		add_right(&line, slice_of(columns[i].heading), columns[i].width);
	view_text_add_color(out, style, VIEW_BOLD, str_slice(&line));
	str_putc(out, '\n');
}

void stats_text_add_row(struct str *out, const struct stats_row *row)
{
	scoped_str struct str cell = {0};
	char at[CLOCK_TEXT_LEN];

	clock_format(row->wall_ms, at);
	str_add(out, at + 11, TIME_WIDTH);
	if (row->cpu_permille == STATS_UNKNOWN)
		str_putc(&cell, '-');
	else
		str_printf(&cell, "%lld.%lld", (long long)row->cpu_permille / 10,
			(long long)row->cpu_permille % 10);
	add_right(out, str_slice(&cell), 8);
	for (size_t i = 0; i < N_COLUMNS; i++) {
		int64_t value = row->figures[columns[i].figure];

		str_reset(&cell);
		if (value == STATS_UNKNOWN)
			str_putc(&cell, '-');
		else
			columns[i].add(&cell, value);
		add_right(out, str_slice(&cell), columns[i].width);
	}
	str_putc(out, '\n');
}
