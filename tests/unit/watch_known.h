/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch knows, as text, and whether it is sure of it. */
#ifndef TESTS_WATCH_KNOWN_H
#define TESTS_WATCH_KNOWN_H

#include <stdlib.h>
#include <string.h>

#include "manifest/watch_internal.h"
#include "util/mem.h"

#define LINES_MAX 1000

static bool is_busy(struct watch *watch)
{
	return settle_next_ns(&watch->tree.settle) >= 0 || watch->has_overflown ||
	       watch->has_unread || watch->is_doubtful;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Their order is asserted elsewhere: of two names without a folder between it is the clock's. */
static void sort_lines(const char *text, struct str *out)
{
	scoped_mem char *copy = mem_dup(text);
	char *lines[LINES_MAX], *rest = copy;
	size_t n = 0;

	for (char *line; n < LINES_MAX && (line = strsep(&rest, "\n"));)
		if (*line)
			lines[n++] = line;
	qsort(lines, n, sizeof(*lines), compare_lines);
	str_puts(out, "");
	for (size_t i = 0; i < n; i++)
		str_printf(out, "%s\n", lines[i]);
}

/* A line for each name: its mode and its inode. */
static void add_known(struct watch_tree *tree, struct str *out)
{
	scoped_str struct str text = {0};

	str_puts(&text, "");
	for (struct watch_entry *e = &tree->root; (e = watch_tree_walk(&tree->root, e));) {
		watch_tree_add_path(e, &text);
		str_printf(&text, " %o %llu\n", e->told.mode, (unsigned long long)e->told.ino);
	}
	sort_lines(text.p, out);
}

#endif
