/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"
#include "util/log.h"
#include "view/process_tree.h"
#include "view/saturate.h"

#define DRAWN 24 /* levels that are drawn; deeper ones say how deep they are */

struct page {
	const struct view_style *style;
	struct str *out;
	struct str line, cell;
};

/* The branches left of a node: two columns a level. */
static void add_branches(struct str *out, const struct process_node *node)
{
	const struct process_node *above[DRAWN];
	size_t depth = 0, n;

	for (const struct process_node *at = node; at->shown_parent; at = at->shown_parent)
		depth++;
	if (depth > DRAWN) {
		str_printf(out, "(%zu deep) ", depth);
		return;
	}
	n = depth;
	for (const struct process_node *at = node; n > 0; at = at->shown_parent)
		above[--n] = at;
	for (size_t i = 0; i < depth; i++) {
		bool is_last = !above[i]->shown_next;

		if (i + 1 < depth)
			str_puts(out, is_last ? "   " : "\xe2\x94\x82  ");
		else
			str_puts(out, is_last ? "\xe2\x94\x94\xe2\x94\x80 "
					      : "\xe2\x94\x9c\xe2\x94\x80 ");
	}
}

static void add_program(struct str *out, const struct process_node *node)
{
	if (node->argv->n)
		view_text_add_argv(out, node->argv);
	else
		log_add_escaped(out, node->path.len ? node->path : slice_of("?"));
	if (node->argv_truncated)
		str_puts(out, " [...]");
	if (node->entered)
		str_puts(out, "  (came in by another way)");
}

static void add_right(struct str *line, struct slice cell, size_t width)
{
	for (size_t w = view_text_width(cell); w < width; w++)
		str_putc(line, ' ');
	str_add(line, cell.p, cell.len);
}

static void add_status(struct page *page, const struct process_node *node)
{
	struct str *cell = &page->cell;
	bool is_bad = node->has_ended && (node->is_signalled || node->exit_code);

	str_reset(cell);
	view_text_add_status(cell, node->has_ended, node->exit_code, node->signal);
	for (size_t w = view_text_width(str_slice(cell)); w < 9; w++)
		str_putc(&page->line, ' ');
	if (is_bad)
		view_text_add_color(&page->line, page->style, VIEW_RED, str_slice(cell));
	else
		str_add(&page->line, cell->p, cell->len);
}

static void add_row(struct page *page, const struct process_node *node)
{
	struct str *cell = &page->cell;

	str_reset(&page->line);
	str_reset(cell);
	if (node->pid)
		str_int(cell, node->pid);
	else
		str_putc(cell, '?');
	add_right(&page->line, str_slice(cell), 7);
	add_status(page, node);
	str_reset(cell);
	if (node->has_ended)
		clock_add_duration(cell, saturate_span_ms(node->started_ns, node->ended_ns));
	else
		str_putc(cell, '-');
	add_right(&page->line, str_slice(cell), 8);
	str_puts(&page->line, "  ");
	str_reset(cell);
	add_branches(cell, node);
	add_program(cell, node);
	str_add(page->out, page->line.p, page->line.len);
	view_text_add_cut(page->out, str_slice(cell),
		page->style->columns > 40 ? page->style->columns - 26 : 0);
	str_putc(page->out, '\n');
}

static void add_root(struct page *page, const struct process_node *root)
{
	const struct process_node *node = root;

	for (;;) {
		add_row(page, node);
		if (node->shown_first) {
			node = node->shown_first;
			continue;
		}
		while (node != root && !node->shown_next)
			node = node->shown_parent;
		if (node == root)
			return;
		node = node->shown_next;
	}
}

void process_tree_text(struct process_tree *tree, const struct view_style *style, struct str *out)
{
	struct page page = {.style = style, .out = out};
	size_t n = process_tree_settle(tree), rows = 0;

	for (size_t i = 0; i < n; i++) {
		const struct process_node *node = process_tree_get(tree, i);

		if (node->is_hidden || node->shown_parent)
			continue;
		if (rows++ == 0)
			view_text_add_color(out, style, VIEW_DIM,
				slice_of("    PID     EXIT    TIME  PROGRAM"));
		if (rows == 1)
			str_putc(out, '\n');
		add_root(&page, node);
	}
	if (rows == 0)
		str_puts(out, "no programs\n");
	str_done(&page.line);
	str_done(&page.cell);
}
