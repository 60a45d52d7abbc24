/* SPDX-License-Identifier: Apache-2.0 */
/* For a pull request: what came from inside stands in code spans, where nothing is markup, link or mention. */
#include "report/summary_internal.h"

static size_t longest_ticks(struct slice text)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < text.len; i++) {
		run = text.p[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void add_code(struct str *out, struct slice text)
{
	size_t ticks = longest_ticks(text) + 1;

	if (text.len == 0)
		return;
	for (size_t i = 0; i < ticks; i++)
		str_putc(out, '`');
	/* A space at each end is taken off again by Markdown, so that ticks at the ends do no harm. */
	str_putc(out, ' ');
	str_add(out, text.p, text.len);
	str_putc(out, ' ');
	for (size_t i = 0; i < ticks; i++)
		str_putc(out, '`');
}

static bool is_word(struct slice text, size_t i)
{
	return i < text.len &&
	       ((text.p[i] >= 'a' && text.p[i] <= 'z') || (text.p[i] >= '0' && text.p[i] <= '9'));
}

/* Our own words: only what could start markup is escaped. An underscore inside a word, as ids have it, cannot. */
static void add_own(struct str *out, struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		bool inside =
			text.p[i] == '_' && i > 0 && is_word(text, i - 1) && is_word(text, i + 1);

		if (!inside && text.p[i] && strchr("\\`*_[]<>|#", text.p[i]))
			str_putc(out, '\\');
		str_putc(out, text.p[i]);
	}
}

static void add_marked(struct str *out, struct slice text)
{
	while (text.len > 0) {
		bool is_code = text.p[0] == SUMMARY_QUOTE;
		const char *end =
			memchr(text.p, is_code ? SUMMARY_UNQUOTE : SUMMARY_QUOTE, text.len);
		size_t n = end ? (size_t)(end - text.p) : text.len;

		if (is_code)
			add_code(out, (struct slice){.p = text.p + 1, .len = n - 1});
		else
			add_own(out, (struct slice){.p = text.p, .len = n});
		n += is_code && end;
		text = (struct slice){.p = text.p + n, .len = text.len - n};
	}
}

void summary_markdown(struct summary *summary, struct str *out)
{
	scoped_str struct str title = {0};
	struct summary_lines lines;

	summary_lines_title(summary, &title);
	str_puts(out, "### ");
	add_marked(out, str_slice(&title));
	str_puts(out, "\n\n");
	summary_lines_make(summary, false, &lines);
	for (size_t i = 0; i < lines.n; i++) {
		const struct summary_line *line = &lines.lines[i];

		str_puts(out, "- ");
		if (line->label)
			str_printf(out, "**%s**: ", line->label);
		add_marked(out, str_slice(&line->text));
		str_putc(out, '\n');
	}
	summary_lines_done(&lines);
}
