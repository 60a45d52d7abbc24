/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/apply_notes.h"

#include <stdlib.h>
#include <string.h>

#include "manifest/apply_plan.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"

#define LINES_MAX 20 /* of those that say the same; -v: all */

static const char *const words[APPLY_N_RESULTS] = {
	[APPLY_DONE] = "applied",
	[APPLY_LESS] = "applied",
	[APPLY_DROPPED] = "dropped",
	[APPLY_LEFT] = "left",
	[APPLY_REFUSED] = "refused",
};

static const struct {
	const char *letter, *word;
} kinds[CHANGE_N_KINDS] = {
	[CHANGE_ADDED] = {"A", "added"},
	[CHANGE_REMOVED] = {"D", "removed"},
	[CHANGE_CHANGED] = {"M", "changed"},
	[CHANGE_RENAMED] = {"R", "renamed"},
	[CHANGE_MODE] = {"m", "mode_changed"},
};

/* Notes that say the same: shown up to a number, and then counted. */
struct group {
	size_t n, n_shown;
	const struct apply_note *note; /* one of them */
};

static bool is_done(const struct apply_note *note)
{
	return note->result == APPLY_DONE || note->result == APPLY_LESS;
}

static void add_text(struct str *out, const char *text, const char *more)
{
	if (!text && !*more)
		return;
	str_puts(out, "  (");
	log_add_escaped(out, slice_of(text ? text : ""));
	str_puts(out, text && *more ? "; " : "");
	str_puts(out, more);
	str_putc(out, ')');
}

static bool has_install_script(const struct apply_note *note)
{
	return is_done(note) && note->is_dependency;
}

static const char *note_more(const struct apply_note *note)
{
	return has_install_script(note) ? "has install scripts" : "";
}

static void add_note(struct str *out, const struct apply_note *note, const char *more)
{
	str_printf(out, "%-8s ", words[note->result]);
	if (is_done(note))
		str_printf(out, "%s ", kinds[note->kind].letter);
	if (is_done(note) && note->from) {
		log_add_escaped(out, slice_of(note->from));
		str_puts(out, " -> ");
	}
	log_add_escaped(out, slice_of(note->path));
	add_text(out, note->text, more);
	str_putc(out, '\n');
}

/* One line for all that is left of .git or node_modules: they hold thousands. */
static void add_folder(struct str *out, const struct group *group)
{
	const struct apply_note *note = group->note;

	str_printf(out, "%-8s ", words[note->result]);
	log_add_escaped(out, (struct slice){.p = note->path, .len = note->folder_len});
	str_printf(out, "/  %zu file%s", group->n, group->n == 1 ? "" : "s");
	add_text(out, note->text, note->runs_on_host ? "-v lists them" : "");
	str_putc(out, '\n');
}

/* What is still pending the next call tells again. */
static void add_rest(struct str *out, const struct group *group)
{
	bool again = group->note->result == APPLY_LEFT || group->note->result == APPLY_REFUSED;

	str_printf(out, "%-8s ... and %zu more", words[group->note->result],
		group->n - group->n_shown);
	add_text(out, group->note->text, again ? "-v lists them" : "");
	str_putc(out, '\n');
}

static struct group *find_group(struct map *groups, const struct apply_note *note)
{
	scoped_str struct str key = {0};
	void **slot;

	str_printf(&key, "%s %s ", words[note->result], note->text ? note->text : "");
	str_add(&key, note->path, note->folder_len);
	slot = map_slot(groups, str_slice(&key));
	if (!*slot)
		*slot = new0(struct group);
	return *slot;
}

static struct map *group_notes(const struct apply_report *report)
{
	struct map *groups = map_new();

	for (size_t i = 0; i < report->n_notes; i++) {
		struct group *group = find_group(groups, &report->notes[i]);

		group->n++;
		group->note = &report->notes[i];
	}
	return groups;
}

static void free_groups(struct map *groups)
{
	struct slice key;
	void *group;

	for (size_t i = 0; map_next(groups, &i, &key, &group);)
		free(group);
	map_free(groups);
}

static void add_grouped(struct str *out, struct group *group, const struct apply_note *note)
{
	bool is_folder = note->folder_len > 0 && (group->n > 1 || !note->runs_on_host);

	if (group->n_shown >= (is_folder ? 1 : LINES_MAX))
		return;
	if (is_folder)
		add_folder(out, group);
	else
		add_note(out, note, "");
	group->n_shown += is_folder ? group->n : 1;
}

static void add_rests(struct str *out, struct map *groups, bool left)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(groups, &i, &key, &value);) {
		struct group *group = value;

		if ((group->note->result == APPLY_LEFT) == left && group->n_shown > 0 &&
			group->n_shown < group->n)
			add_rest(out, group);
	}
}

/* Naming node_modules took them along: `npm install` would have run them, `npm rebuild` will. */
static void add_install_scripts(struct str *out, const struct apply_report *report)
{
	size_t n = 0;

	for (size_t i = 0; i < report->n_notes; i++)
		n += has_install_script(&report->notes[i]);
	if (n > 0)
		str_printf(out, "applied  %zu package%s with install scripts  (-v lists them)\n", n,
			n == 1 ? "" : "s");
}

void apply_notes_add(struct str *out, const struct apply_report *report, const struct cli *cli)
{
	struct map *groups = group_notes(report);

	/* What waits for its name comes first, so that a long list does not hide it. */
	for (int left = 1; left >= 0; left--) {
		for (size_t i = 0; i < report->n_notes; i++) {
			const struct apply_note *note = &report->notes[i];

			if ((note->result == APPLY_LEFT) != left ||
				(cli->quiet && note->result == APPLY_DONE && !note->text))
				continue;
			if (cli->verbose)
				add_note(out, note, note_more(note));
			else
				add_grouped(out, find_group(groups, note), note);
		}
		if (!cli->verbose)
			add_rests(out, groups, left);
	}
	if (!cli->verbose && !cli->quiet)
		add_install_scripts(out, report);
	free_groups(groups);
}

void apply_notes_total(struct str *out, const size_t counts[APPLY_N_RESULTS])
{
	size_t done = counts[APPLY_DONE] + counts[APPLY_LESS];

	if (done + counts[APPLY_DROPPED] + counts[APPLY_LEFT] + counts[APPLY_REFUSED] == 0) {
		str_puts(out, "nothing to apply\n");
		return;
	}
	str_printf(out, "%zu applied", done);
	if (counts[APPLY_DROPPED] > 0)
		str_printf(out, ", %zu dropped", counts[APPLY_DROPPED]);
	if (counts[APPLY_LEFT] > 0)
		str_printf(out, ", %zu left", counts[APPLY_LEFT]);
	if (counts[APPLY_REFUSED] > 0)
		str_printf(out, ", %zu refused", counts[APPLY_REFUSED]);
	str_putc(out, '\n');
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
		if (kinds[note->kind].word)
			jsonw_ktext(&j, "change", kinds[note->kind].word);
		if (note->from)
			jsonw_kslice(&j, "from", slice_of(note->from));
		if (note->text)
			jsonw_ktext(&j, "note", note->text);
		if (has_install_script(note))
			jsonw_kbool(&j, "install_scripts", true);
		jsonw_object_end(&j);
	}
	jsonw_array_end(&j);
	jsonw_object_end(&j);
}
