/* SPDX-License-Identifier: Apache-2.0 */
/* Who believes each line that a watch tells: the names that there are by it, and the first line that cannot be. */
#ifndef TESTS_WATCH_TOLD_H
#define TESTS_WATCH_TOLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "manifest/watch_internal.h"
#include "manifest/watch_line.h"
#include "util/mem.h"
#include "watch_known.h"

static struct {
	char *names[LINES_MAX];
	size_t n;
	struct str wrong; /* the first line that cannot be */
} told;

static bool is_in(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool has(const char *path)
{
	for (size_t i = 0; i < told.n; i++)
		if (strcmp(told.names[i], path) == 0)
			return true;
	return false;
}

static bool has_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	scoped_mem char *folder = slash ? mem_copy(path, (size_t)(slash - path)) : NULL;

	return !folder || has(folder);
}

static void add(const char *path)
{
	assert_true(told.n < LINES_MAX);
	told.names[told.n++] = mem_dup(path);
}

static void forget(const char *path)
{
	for (size_t i = 0; i < told.n;) {
		if (!is_in(told.names[i], path)) {
			i++;
			continue;
		}
		free(told.names[i]);
		told.names[i] = told.names[--told.n];
	}
}

static void forget_all(void)
{
	while (told.n > 0)
		free(told.names[--told.n]);
	str_done(&told.wrong);
}

static void rename_all(const char *from, const char *to)
{
	for (size_t i = 0; i < told.n; i++) {
		char *old = told.names[i];

		if (!is_in(old, from))
			continue;
		told.names[i] = mem_printf("%s%s", to, old + strlen(from));
		free(old);
	}
}

static bool can_be(const struct watch_change *change)
{
	switch (change->kind) {
	case WATCH_CREATED:
		return !has(change->path) && has_folder_of(change->path);
	case WATCH_RENAMED:
		return change->from && has(change->from) && has(change->path) == change->replaced &&
		       has_folder_of(change->path);
	case WATCH_WRITTEN:
	case WATCH_DELETED:
		return has(change->path);
	case WATCH_MODE:
		return *change->path == '\0' || has(change->path);
	case WATCH_OVERFLOW:  /* fewer events than the kernel keeps */
	case WATCH_UNWATCHED: /* and nothing lies at two places */
	case WATCH_N_KINDS:
		break;
	}
	return false;
}

/* Takes in a line; arg: bool, whether it is printed. */
static void believe(void *arg, const struct watch_change *change)
{
	const bool *is_loud = arg;

	if (*is_loud)
		print_message("%s %s %s\n", watch_line_word(change->kind), change->path,
			change->from ? change->from : "");
	if (!can_be(change) && !told.wrong.p)
		str_printf(&told.wrong, "%s '%s', from '%s'", watch_line_word(change->kind),
			change->path, change->from ? change->from : "");
	if (change->kind == WATCH_DELETED || change->kind == WATCH_RENAMED)
		forget(change->path);
	if (change->kind == WATCH_RENAMED)
		rename_all(change->from, change->path);
	if (change->kind == WATCH_CREATED)
		add(change->path);
}

static void add_names(struct watch_tree *tree, struct str *out)
{
	scoped_str struct str text = {0};

	str_puts(&text, "");
	for (struct watch_entry *e = &tree->root; (e = watch_tree_walk(&tree->root, e));) {
		watch_tree_add_path(e, &text);
		str_puts(&text, "\n");
	}
	sort_lines(text.p, out);
}

static void add_told(struct str *out)
{
	scoped_str struct str text = {0};

	str_puts(&text, "");
	for (size_t i = 0; i < told.n; i++)
		str_printf(&text, "%s\n", told.names[i]);
	sort_lines(text.p, out);
}

#endif
