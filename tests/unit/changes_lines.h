/* SPDX-License-Identifier: Apache-2.0 */
/* A list of changes as the lines that cases want. */
#ifndef TESTS_CHANGES_LINES_H
#define TESTS_CHANGES_LINES_H

#include "overlay.h"

static void list_rights(struct str *out, const struct change *c)
{
	if (c->kind == CHANGE_MODE && ((c->before.mode ^ c->after.mode) & 07777))
		str_printf(out, " %04o %04o", c->before.mode & 07777, c->after.mode & 07777);
	if (c->flags & CHANGE_OWNER)
		str_puts(out, " owner");
	if (c->flags & CHANGE_ATTRIBUTES)
		str_puts(out, " attributes");
}

static const char *type_word(mode_t mode)
{
	return S_ISDIR(mode)    ? "directory"
	       : S_ISLNK(mode)  ? "link"
	       : S_ISFIFO(mode) ? "pipe"
	                        : "file";
}

static void list_type(struct str *out, const struct change *c)
{
	mode_t before = c->before.mode, after = c->after.mode;

	if (before && after && ((before ^ after) & S_IFMT))
		str_printf(out, " %s %s", type_word(before), type_word(after));
	else if (!S_ISREG(after ? after : before))
		str_printf(out, " %s", type_word(after ? after : before));
}

static void list_one(struct str *out, const struct change *c)
{
	static const char *const words[] = {"", "added", "removed", "changed", "renamed", "mode"};

	str_printf(out, "%s ", words[c->kind]);
	if (c->from && c->kind != CHANGE_REMOVED)
		str_printf(out, "%s -> ", c->from);
	str_puts(out, changes_shown_path(c));
	list_rights(out, c);
	list_type(out, c);
	if (c->flags & CHANGE_RUNS_ON_HOST)
		str_puts(out, " runs");
	if (c->flags & CHANGE_HOST_CHANGED)
		str_puts(out, " host");
	str_putc(out, '\n');
	if (!(c->flags & CHANGE_UNSURE) && c->kind != CHANGE_MODE)
		assert_int_equal(c->before.sha256[0] != 0, S_ISREG(c->before.mode));
	assert_int_equal(c->after.sha256[0] != 0, S_ISREG(c->after.mode));
}

static void list_skipped(struct str *out, const struct changes *changes, size_t *i)
{
	const struct change *first = &changes->items[*i];
	scoped_str struct str notable = {0};
	size_t n = 0;

	for (; *i < changes->n_items; ++*i) {
		const struct change *c = &changes->items[*i];

		if (c->skipped_len != first->skipped_len ||
			strncmp(c->path, first->path, c->skipped_len) != 0)
			break;
		n += !(c->flags & CHANGE_QUIET);
		if (c->flags & CHANGE_RUNS_ON_HOST)
			str_printf(&notable, " %s", c->path);
	}
	str_printf(out, "skipped %.*s %zu%s\n", (int)first->skipped_len, first->path, n,
		notable.p ? notable.p : "");
}

static void list_changes(struct str *out, const struct changes *changes)
{
	if (changes->unread)
		str_printf(out, "unread %s\n", changes->unread);
	for (size_t i = 0; i < changes->n_items;) {
		if (changes->items[i].flags & CHANGE_SKIPPED)
			list_skipped(out, changes, &i);
		else if (!changes_is_listed(&changes->items[i++]))
			continue;
		else
			list_one(out, &changes->items[i - 1]);
	}
}

#endif
