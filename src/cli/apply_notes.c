/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/apply_notes.h"

#include <string.h>

#include "manifest/apply_plan.h"
#include "util/jsonw.h"
#include "util/log.h"

static const char *const words[APPLY_N_RESULTS] = {
	[APPLY_DONE] = "applied",
	[APPLY_LESS] = "applied",
	[APPLY_DROPPED] = "dropped",
	[APPLY_LEFT] = "left",
	[APPLY_REFUSED] = "refused",
};

static void add_note(struct str *out, const struct apply_note *note)
{
	str_printf(out, "%-8s ", words[note->result]);
	log_add_escaped(out, slice_of(note->path));
	if (note->text) {
		str_puts(out, "  (");
		log_add_escaped(out, slice_of(note->text));
		str_putc(out, ')');
	}
	str_putc(out, '\n');
}

static bool is_in(const struct apply_note *note, const struct apply_note *first)
{
	return strncmp(note->path, first->path, first->folder_len) == 0 &&
	       note->path[first->folder_len] == '/';
}

/* The notes are in path order: those of one folder stand together. */
static bool is_first_of_folder(const struct apply_report *report, size_t i)
{
	const struct apply_note *note = &report->notes[i];

	for (size_t k = i; k > 0 && is_in(&report->notes[k - 1], note); k--)
		if (report->notes[k - 1].folder_len > 0)
			return false;
	return true;
}

/* One line for all that is left of .git or node_modules: they hold thousands. */
static void add_folder(struct str *out, const struct apply_report *report, size_t first)
{
	const struct apply_note *note = &report->notes[first];
	size_t n = 0;

	for (size_t i = first; i < report->n_notes && is_in(&report->notes[i], note); i++)
		n += report->notes[i].folder_len > 0;
	str_printf(out, "%-8s ", words[note->result]);
	log_add_escaped(out, (struct slice){.p = note->path, .len = note->folder_len});
	str_printf(out, "/  %zu file%s  (", n, n == 1 ? "" : "s");
	log_add_escaped(out, slice_of(note->text ? note->text : ""));
	str_puts(out, ")\n");
}

void apply_notes_add(struct str *out, const struct apply_report *report, bool all)
{
	/* What waits for its name comes first, so that a long list does not hide it. */
	for (int left = 1; left >= 0; left--) {
		for (size_t i = 0; i < report->n_notes; i++) {
			const struct apply_note *note = &report->notes[i];

			if ((note->result == APPLY_LEFT) != left ||
				(!all && note->result == APPLY_DONE && !note->text))
				continue;
			if (note->folder_len == 0)
				add_note(out, note);
			else if (is_first_of_folder(report, i))
				add_folder(out, report, i);
		}
	}
}

void apply_notes_before(
	struct str *out, const struct changes *changes, const struct apply_options *options)
{
	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];
		bool named = options->n_paths == 0;

		for (size_t k = 0; !named && k < options->n_paths; k++)
			named = apply_plan_names(c, options->paths[k]);
		if (!(c->flags & CHANGE_HOST_CHANGED) || !named || (c->flags & CHANGE_SKIPPED))
			continue;
		str_puts(out, "about to overwrite ");
		log_add_escaped(out, slice_of(changes_shown_path(c)));
		if (c->before.sha256[0])
			str_printf(out, "  (sha256 %s)", c->before.sha256);
		str_putc(out, '\n');
	}
}

void apply_notes_json(struct str *out, const char *root, const struct apply_report *report)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "root", root);
	jsonw_key(&j, "changes");
	jsonw_array(&j);
	for (size_t i = 0; i < report->n_notes; i++) {
		const struct apply_note *note = &report->notes[i];

		jsonw_object(&j);
		jsonw_kslice(&j, "path", slice_of(note->path));
		jsonw_ktext(&j, "result", words[note->result]);
		if (note->text)
			jsonw_ktext(&j, "note", note->text);
		jsonw_object_end(&j);
	}
	jsonw_array_end(&j);
	jsonw_object_end(&j);
}
