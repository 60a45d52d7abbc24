/* SPDX-License-Identifier: Apache-2.0 */
/* One screen: a label and its text a line, wrapped under itself. */
#include "report/summary_internal.h"

#define LABEL_WIDTH 10
#define WIDTH_MAX   100
#define WIDTH_MIN   60

static void add_unmarked(struct str *out, struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.p[i] != SUMMARY_QUOTE && text.p[i] != SUMMARY_UNQUOTE)
			str_putc(out, text.p[i]);
}

/* How much of text fits in width columns: up to the last space that does, or a hard cut. */
static size_t fit(struct slice text, size_t width)
{
	size_t columns = 0, space = 0, i = 0;

	for (; i < text.len; i++) {
		bool is_start = ((unsigned char)text.p[i] & 0xc0) != 0x80;

		if (is_start && columns++ == width)
			break;
		if (text.p[i] == ' ')
			space = i;
	}
	if (i == text.len)
		return i;
	return space > 0 ? space : i;
}

static void add_wrapped(struct str *out, struct slice text, size_t width)
{
	for (bool is_first = true; text.len > 0; is_first = false) {
		size_t n = fit(text, width);

		for (int i = 0; !is_first && i < LABEL_WIDTH; i++)
			str_putc(out, ' ');
		str_add(out, text.p, n);
		str_putc(out, '\n');
		while (n < text.len && text.p[n] == ' ')
			n++;
		text = (struct slice){.p = text.p + n, .len = text.len - n};
	}
}

static void add_label(
	struct str *out, const struct view_style *style, const struct summary_line *line)
{
	struct slice label = slice_of(line->label);

	if (line->tone == SUMMARY_BAD)
		view_text_add_color(out, style, VIEW_RED, label);
	else if (line->tone == SUMMARY_WARN)
		view_text_add_color(out, style, VIEW_YELLOW, label);
	else
		view_text_add_color(out, style, VIEW_BOLD, label);
	for (size_t w = label.len; w < LABEL_WIDTH; w++)
		str_putc(out, ' ');
}

static size_t width_of(const struct view_style *style)
{
	if (style->columns == 0 || style->columns > WIDTH_MAX)
		return WIDTH_MAX;
	return style->columns < WIDTH_MIN ? WIDTH_MIN : style->columns;
}

void summary_text(struct summary *summary, const struct view_style *style, struct str *out)
{
	scoped_str struct str plain = {0};
	struct summary_lines lines;
	size_t width = width_of(style);

	summary_lines_title(summary, &plain);
	add_unmarked(out, str_slice(&plain));
	str_putc(out, '\n');
	summary_lines_make(summary, true, &lines);
	for (size_t i = 0; i < lines.n; i++) {
		const struct summary_line *line = &lines.lines[i];

		str_reset(&plain);
		add_unmarked(&plain, str_slice(&line->text));
		if (!line->label) {
			str_add(out, plain.p, plain.len); /* commands to copy: never broken */
			str_putc(out, '\n');
			continue;
		}
		add_label(out, style, line);
		add_wrapped(out, str_slice(&plain), width - LABEL_WIDTH);
	}
	summary_lines_done(&lines);
}
