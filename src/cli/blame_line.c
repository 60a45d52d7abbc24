/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/blame_line.h"

#include <string.h>

#include "cli/changes_text.h"
#include "manifest/changes.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"

#define NO_EVENT 0          /* in place of an event's number: it was not traced */
#define NO_ONE   UINT64_MAX /* it is not one change but many */

static struct blame_line *new_line(struct blame_job *job, int64_t at_ms)
{
	if (job->n_lines == job->room) {
		job->room = job->room ? job->room * 2 : 64;
		job->lines = mem_grow(job->lines, job->room, sizeof(struct blame_line));
	}
	job->lines[job->n_lines] = (struct blame_line){.at_ms = at_ms};
	return &job->lines[job->n_lines++];
}

static const char *mode_of(const struct blame_part *part, struct slice path)
{
	for (size_t i = 0; i < part->targets.n; i++)
		if (path_is_beneath(path, slice_of(part->targets.items[i].guest)))
			return part->targets.items[i].mode;
	return part->targets.n == 1 ? part->targets.items[0].mode : NULL;
}

static bool is_cow(const char *mode)
{
	return mode && strcmp(mode, "cow") == 0;
}

/* Of the path as it was then; where that is an old name, of what was asked for. */
static enum blame_fate fate_of(
	const struct blame_job *job, const struct blame_part *part, struct slice path)
{
	struct slice asked = slice_of(part->targets.items[0].guest);

	if (part->targets.n == 1 && !path_is_beneath(path, asked))
		return blame_acts_fate(job->acts, asked);
	return blame_acts_fate(job->acts, path);
}

/* How much of a path is a .git or node_modules that is one line: not in JSON, nor where it is asked for itself. */
static size_t folder_len(
	const struct blame_job *job, const struct blame_part *part, struct slice path)
{
	size_t len;

	if (job->o->all || job->cli->json || job->cli->jsonl)
		return 0;
	len = changes_skipped_len(path);
	for (size_t i = 0; len > 0 && i < part->targets.n; i++)
		if (changes_skipped_len(slice_of(part->targets.items[i].guest)) > 0)
			return 0;
	return len;
}

/* Whether it was counted with others, and needs no line of its own. What came there from elsewhere (from, else empty) left
 * a place that may be the one asked for. */
static bool count_in_folder(struct blame_job *job, struct blame_part *part, struct slice path,
	struct slice from, int64_t at_ms)
{
	struct slice folder = {.p = path.p, .len = folder_len(job, part, path)};
	struct blame_line *line;
	void **place;

	if (folder.len == 0 || (from.len > 0 && folder_len(job, part, from) == 0))
		return false;
	place = map_slot(part->folders, folder);
	if (!*place) {
		line = new_line(job, at_ms);
		line->folder = mem_copy(folder.p, folder.len);
		*place = (void *)(uintptr_t)job->n_lines;
	}
	line = &job->lines[(size_t)(uintptr_t)*place - 1];
	line->at_ms = at_ms > line->at_ms ? at_ms : line->at_ms;
	line->n++;
	return true;
}

static void begin_json(struct jsonw *j, const struct blame_part *part, int64_t at_ms,
	const char *change, struct slice path)
{
	char at[CLOCK_TEXT_LEN];

	clock_format(at_ms, at);
	jsonw_object(j);
	jsonw_ktext(j, "sandbox", part->id);
	jsonw_ktext(j, "task", part->task);
	jsonw_ktext(j, "at", at);
	jsonw_ktext(j, "change", change);
	jsonw_kslice(j, "path", path);
}

static void end_json(const struct blame_job *job, const struct blame_part *part, struct jsonw *j,
	struct slice path)
{
	const char *mode = mode_of(part, path);

	if (mode)
		jsonw_ktext(j, "mount", mode);
	if (is_cow(mode))
		blame_acts_json(job->acts, fate_of(job, part, path), j);
	jsonw_object_end(j);
}

static void write_who(struct jsonw *j, const struct blame_row *row)
{
	jsonw_kslice(j, "exec", row->exec);
	jsonw_kint(j, "pid", row->pid);
	if (row->node) {
		jsonw_kslice(j, "program", row->node->path);
		jsonw_klist(j, "argv", row->node->argv->items, row->node->argv->n);
	}
	if (row->command && row->command->command.len > 0)
		jsonw_kslice(j, "command", row->command->command);
	else if (row->command)
		jsonw_klist(j, "command_argv", row->command->argv.items, row->command->argv.n);
}

static void add_command(struct str *out, const struct command *command)
{
	if (command->command.len > 0)
		log_add_escaped(out, command->command);
	else
		view_text_add_argv(out, &command->argv);
}

static void add_who(struct str *out, const struct blame_row *row)
{
	if (row->node) {
		str_puts(out, " by ");
		log_add_escaped(out, row->node->path);
	} else if (row->pid) {
		str_printf(out, " by process %lld", (long long)row->pid);
	}
	if (row->command) {
		str_puts(out, " in `");
		add_command(out, row->command);
		str_puts(out, "`");
	}
}

static void add_head(struct str *out, int64_t at_ms, const char *change)
{
	char at[CLOCK_TEXT_LEN];

	clock_format(at_ms, at);
	str_printf(out, "%.10s %.8s  %-8s ", at, at + 11, change);
}

static void add_where(const struct blame_job *job, const struct blame_part *part, struct slice path,
	uint64_t seq, struct str *out)
{
	const char *mode = mode_of(part, path);

	str_printf(out, "\n    %s", part->id);
	if (seq != NO_EVENT && seq != NO_ONE)
		str_printf(out, " event %llu", (unsigned long long)seq);
	if (part->task) {
		str_puts(out, ", task ");
		log_add_escaped(out, slice_of(part->task));
	}
	if (mode) {
		str_puts(out, ", ");
		log_add_escaped(out, slice_of(mode));
		str_puts(out, " mount");
	}
	if (is_cow(mode))
		blame_acts_text(job->acts,
			seq == NO_ONE ? BLAME_FATE_UNKNOWN : fate_of(job, part, path), out);
	str_putc(out, '\n');
}

void blame_line_add_folders(struct blame_job *job, const struct blame_part *part, size_t first)
{
	for (size_t i = first; i < job->n_lines; i++) {
		struct blame_line *line = &job->lines[i];

		if (!line->folder)
			continue;
		add_head(&line->text, line->at_ms, "changed");
		log_add_escaped(&line->text, slice_of(line->folder));
		str_printf(&line->text, "/ (%zu change%s: name it, or --all)", line->n,
			line->n == 1 ? "" : "s");
		add_where(job, part, slice_of(line->folder), NO_ONE, &line->text);
	}
}

void blame_line_add_row(struct blame_job *job, struct blame_part *part, const struct blame_row *row)
{
	struct slice from = row->change == BLAME_RENAMED ? row->from : (struct slice){0};
	struct blame_line *line;
	struct jsonw j;

	if (count_in_folder(job, part, row->path, from, row->wall_ms))
		return;
	line = new_line(job, row->wall_ms);
	j = jsonw_to(&line->json);
	begin_json(&j, part, row->wall_ms, blame_word(row->change), row->path);
	if (row->from.len > 0)
		jsonw_kslice(&j, row->change == BLAME_RENAMED ? "from" : "target", row->from);
	jsonw_kint(&j, "times", (int64_t)row->times);
	jsonw_kint(&j, "seq", (int64_t)row->seq);
	jsonw_kint(&j, "first_seq", (int64_t)row->first_seq);
	write_who(&j, row);
	end_json(job, part, &j, row->path);
	add_head(&line->text, row->wall_ms, blame_word(row->change));
	if (row->change == BLAME_RENAMED) {
		log_add_escaped(&line->text, row->from);
		str_puts(&line->text, " -> ");
	}
	log_add_escaped(&line->text, row->path);
	if (row->times > 1)
		str_printf(&line->text, " (%zu times)", row->times);
	add_who(&line->text, row);
	add_where(job, part, row->path, row->seq, &line->text);
}

static bool is_target(const struct blame_part *part, struct slice path)
{
	for (size_t i = 0; path.len > 0 && i < part->targets.n; i++)
		if (path_is_beneath(path, slice_of(part->targets.items[i].guest)))
			return true;
	return false;
}

void blame_line_add_change(struct blame_job *job, struct blame_part *part, const char *kind,
	const json_t *change, int64_t at_ms)
{
	scoped_str struct str path = {0}, from = {0};
	struct blame_line *line;
	struct jsonw j;

	changes_text_bytes(change, "path", &path);
	changes_text_bytes(change, "from", &from);
	if (!is_target(part, str_slice(&path)) && !is_target(part, str_slice(&from)))
		return;
	if (count_in_folder(job, part, str_slice(&path), str_slice(&from), at_ms))
		return;
	line = new_line(job, at_ms);
	j = jsonw_to(&line->json);
	begin_json(&j, part, at_ms, kind, str_slice(&path));
	if (from.len > 0)
		jsonw_kslice(&j, "from", str_slice(&from));
	jsonw_knull(&j, "exec");
	end_json(job, part, &j, str_slice(&path));
	add_head(&line->text, at_ms, kind);
	if (from.len > 0 && strcmp(kind, "renamed") == 0) {
		log_add_escaped(&line->text, str_slice(&from));
		str_puts(&line->text, " -> ");
	}
	log_add_escaped(&line->text, str_slice(&path));
	str_puts(&line->text, ", by whom was not traced");
	add_where(job, part, str_slice(&path), NO_EVENT, &line->text);
}
