/* SPDX-License-Identifier: Apache-2.0 */
#include "util/log.h"
#include "view/file_table.h"

#define HOW_WIDTH 24

static void add_word(struct str *out, bool is, const char *word)
{
	if (!is)
		return;
	if (out->len)
		str_puts(out, ", ");
	str_puts(out, word);
}

static void add_how(struct str *out, const struct file_entry *entry)
{
	str_reset(out);
	add_word(out, entry->denied, "denied");
	add_word(out, entry->created, "created");
	add_word(out, entry->replaced, "replaced");
	add_word(out, entry->written && !entry->created && !entry->replaced, "written");
	add_word(out, entry->mode_changed, "mode");
	add_word(out, entry->deleted, "deleted");
	add_word(out, entry->renamed_to.len > 0, "moved");
	add_word(out, out->len == 0 && entry->renamed_from.len > 0, "moved here");
	add_word(out, out->len == 0 && entry->read, "read");
	add_word(out, out->len == 0, "seen");
}

static void add_place(struct str *out, const struct file_entry *entry)
{
	str_reset(out);
	log_add_escaped(out, entry->path);
	if (entry->directory && !slice_is(entry->path, "/"))
		str_putc(out, '/');
	if (entry->renamed_to.len) {
		str_puts(out, " -> ");
		log_add_escaped(out, entry->renamed_to);
	}
	if (entry->renamed_from.len && !slice_eq(entry->renamed_from, entry->renamed_to)) {
		str_puts(out, " (was ");
		log_add_escaped(out, entry->renamed_from);
		str_putc(out, ')');
	}
}

static void add_bytes(struct str *out, const struct file_entry *entry)
{
	int64_t written = file_entry_written(entry);

	if (entry->bytes_read == 0 && written == 0)
		return;
	str_puts(out, "  [");
	if (entry->bytes_read > 0) {
		str_puts(out, "read ");
		view_text_add_bytes(out, entry->bytes_read);
	}
	if (written > 0) {
		str_puts(out, entry->bytes_read > 0 ? ", wrote " : "wrote ");
		view_text_add_bytes(out, written);
	}
	str_putc(out, ']');
}

void file_table_text(struct file_table *table, const struct view_style *style, struct str *out)
{
	size_t n = file_table_settle(table);
	size_t room = style->columns > 60 ? style->columns - HOW_WIDTH - 2 : 0;
	scoped_str struct str how = {0}, place = {0};

	if (n == 0)
		str_puts(out, "no files\n");
	for (size_t i = 0; i < n; i++) {
		const struct file_entry *entry = file_table_get(table, i);

		add_how(&how, entry);
		add_place(&place, entry);
		add_bytes(&place, entry);
		if (entry->denied)
			view_text_add_color(out, style, VIEW_RED, str_slice(&how));
		else
			str_add(out, how.p, how.len);
		for (size_t w = how.len; w < HOW_WIDTH; w++)
			str_putc(out, ' ');
		str_puts(out, "  ");
		view_text_add_cut(out, str_slice(&place), room);
		str_putc(out, '\n');
	}
}
