/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/apply_notes.h"

#include "util/jsonw.h"
#include "util/log.h"

static const char *const words[APPLY_N_RESULTS] = {
	[APPLY_DONE] = "applied",
	[APPLY_LESS] = "applied",
	[APPLY_DROPPED] = "dropped",
	[APPLY_LEFT] = "left",
	[APPLY_REFUSED] = "refused",
};

void apply_notes_add(struct str *out, const struct apply_report *report, bool all)
{
	for (size_t i = 0; i < report->n_notes; i++) {
		const struct apply_note *note = &report->notes[i];

		if (!all && note->result == APPLY_DONE && !note->text)
			continue;
		str_printf(out, "%-8s ", words[note->result]);
		log_add_escaped(out, slice_of(note->path));
		if (note->text) {
			str_puts(out, "  (");
			log_add_escaped(out, slice_of(note->text));
			str_putc(out, ')');
		}
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
