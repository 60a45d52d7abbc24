/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that text and Markdown share, in the order in which they are read. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary_internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define LABELS_MAX  3 /* commands that failed, by name */
#define MOUNTS_TOLD 3

struct str *summary_lines_add(
	struct summary_lines *lines, enum summary_tone tone, const char *label)
{
	lines->lines = mem_grow(lines->lines, lines->n + 1, sizeof(*lines->lines));
	lines->lines[lines->n] = (struct summary_line){.tone = tone, .label = label};
	return &lines->lines[lines->n++].text;
}

void summary_lines_done(struct summary_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		str_done(&lines->lines[i].text);
	free(lines->lines);
	*lines = (struct summary_lines){0};
}

void summary_lines_quote(struct str *out, struct slice text, size_t max)
{
	scoped_str struct str escaped = {0};

	log_add_escaped(&escaped, text);
	str_putc(out, SUMMARY_QUOTE);
	view_text_add_cut(out, str_slice(&escaped), max);
	str_putc(out, SUMMARY_UNQUOTE);
}

/* Below a folder that is copy on write: as seen from there, as the user would name it. */
static struct slice from_project(const struct summary *summary, struct slice path)
{
	for (size_t i = 0; i < summary->changes.n; i++) {
		const struct changes_counts *root = &summary->changes.roots[i];
		size_t len = strlen(root->root);

		if (root->cow && slice_starts(path, root->root) && path.len > len + 1 &&
			path.p[len] == '/')
			return (struct slice){.p = path.p + len + 1, .len = path.len - len - 1};
	}
	return path;
}

static void quote_path(
	const struct summary *summary, struct str *out, struct slice path, size_t max)
{
	scoped_str struct str escaped = {0};

	log_add_escaped(&escaped, from_project(summary, path));
	str_putc(out, SUMMARY_QUOTE);
	view_text_add_tail(out, str_slice(&escaped), max);
	str_putc(out, SUMMARY_UNQUOTE);
}

static void quote_line(struct str *out, const struct command *command, size_t max)
{
	scoped_str struct str line = {0};

	command_list_add_line(&line, command);
	str_putc(out, SUMMARY_QUOTE);
	view_text_add_cut(out, str_slice(&line), max);
	str_putc(out, SUMMARY_UNQUOTE);
}

void summary_lines_number(struct str *out, int64_t n, const char *one, const char *many)
{
	view_text_add_count(out, n);
	str_printf(out, " %s", n == 1 ? one : many);
}

void summary_lines_who(struct summary *summary, struct str *out, const struct summary_row *row)
{
	const struct command *command =
		row->node ? command_list_find(summary->commands, row->node) : NULL;

	if (row->program.len) {
		str_puts(out, " by ");
		summary_lines_quote(out, row->program, 40);
	}
	if (command && command->node != row->node) {
		str_puts(out, " in ");
		quote_line(out, command, 40);
	}
	if (row->count > 1) {
		str_puts(out, ", ");
		summary_lines_number(out, row->count, "time", "times");
	}
}

static void add_rows(struct summary *summary, struct summary_lines *lines,
	const struct summary_rows *rows, const char *label, bool is_path)
{
	int64_t told = 0, more = rows->more;

	for (size_t i = 0; i < rows->n; i++) {
		const struct summary_row *row = &rows->rows[i];
		struct str *out;

		if (row->is_aside)
			continue;
		if (told++ >= SUMMARY_HEAD_ROWS) {
			more++;
			continue;
		}
		out = summary_lines_add(lines, SUMMARY_BAD, label);
		if (is_path)
			quote_path(summary, out, row->what, 60);
		else
			summary_lines_quote(out, row->what, 60);
		str_printf(out, " (%s)", row->how);
		summary_lines_who(summary, out, row);
		if (!is_path && row->rule.len) {
			str_puts(out, " (");
			summary_lines_quote(out, row->rule, 60);
			str_putc(out, ')');
		}
	}
	if (more > 0)
		str_printf(summary_lines_add(lines, SUMMARY_BAD, label),
			"and %lld more: see the timeline", (long long)more);
}

static void add_reasons(struct summary_lines *lines, const struct summary_reasons *reasons,
	const char *label, enum summary_tone tone)
{
	for (size_t i = 0; i < reasons->n && i < SUMMARY_HEAD_ROWS; i++) {
		struct str *out = summary_lines_add(lines, tone, label);

		summary_lines_quote(out, reasons->texts[i], 0);
		if (reasons->counts[i] > 1) {
			str_puts(out, ", ");
			summary_lines_number(out, reasons->counts[i], "time", "times");
		}
	}
	if (reasons->n > SUMMARY_HEAD_ROWS)
		str_printf(summary_lines_add(lines, tone, label), "and %zu more",
			reasons->n - SUMMARY_HEAD_ROWS);
}

static void add_head(
	struct summary *summary, struct summary_lines *lines, const struct summary_counts *c)
{
	summary_network_head(summary, lines);
	add_rows(summary, lines, &summary->refused, "REFUSED", false);
	add_rows(summary, lines, &summary->denied, "DENIED", true);
	if (c->programs.entered > 0) {
		struct str *out = summary_lines_add(lines, SUMMARY_BAD, "CAME IN");

		summary_lines_number(out, (int64_t)c->programs.entered, "program", "programs");
		str_puts(out, " by no way of Cloche's: see the tree");
	}
	add_reasons(lines, &summary->errors, "ERROR", SUMMARY_BAD);
	summary_network_shadowed(summary, lines);
	add_reasons(lines, &summary->hints, "HINT", SUMMARY_WARN);
}

/* How often commands of one name failed. */
struct label {
	char *name;
	int64_t count;
};

static int compare_labels(const void *a, const void *b)
{
	const struct label *left = a, *right = b;

	return (left->count < right->count) - (left->count > right->count);
}

static void count_label(struct label **labels, size_t *n, const struct command *command)
{
	scoped_str struct str name = {0};

	command_list_add_label(&name, command);
	for (size_t i = 0; i < *n; i++) {
		if (strcmp((*labels)[i].name, name.p) != 0)
			continue;
		(*labels)[i].count++;
		return;
	}
	if (*n == SUMMARY_ROWS_MAX)
		return;
	*labels = mem_grow(*labels, *n + 1, sizeof(**labels));
	(*labels)[(*n)++] = (struct label){.name = str_take(&name), .count = 1};
}

/* "pytest x2, pip install" */
static void add_failed(struct summary *summary, struct str *out)
{
	struct label *labels = NULL;
	size_t n = 0, n_commands = command_list_settle(summary->commands);

	for (size_t i = 0; i < n_commands; i++) {
		const struct command *command = command_list_get(summary->commands, i);

		if (!command->is_agent && command_list_is_failed(command))
			count_label(&labels, &n, command);
	}
	if (n > 0)
		qsort(labels, n, sizeof(*labels), compare_labels);
	for (size_t i = 0; i < n; i++) {
		if (i < LABELS_MAX) {
			str_puts(out, i ? ", " : ": ");
			str_printf(out, "%c%s%c", SUMMARY_QUOTE, labels[i].name, SUMMARY_UNQUOTE);
			if (labels[i].count > 1)
				str_printf(out, " x%lld", (long long)labels[i].count);
		}
		free(labels[i].name);
	}
	if (n > LABELS_MAX)
		str_puts(out, ", ...");
	free(labels);
}

static void add_odd(struct str *out, int64_t n, const char *what)
{
	if (n > 0)
		str_printf(out, "; %lld %s", (long long)n, what);
}

static void add_commands(
	struct summary *summary, struct summary_lines *lines, const struct summary_counts *c)
{
	struct str *out = summary_lines_add(lines, SUMMARY_PLAIN, "Commands");

	view_text_add_count(out, c->commands);
	if (c->failed > 0) {
		str_printf(out, " (%lld failed", (long long)c->failed);
		add_failed(summary, out);
		str_putc(out, ')');
	}
	if (c->longest) {
		str_puts(out, ", longest ");
		clock_add_duration(out, c->longest->duration_ms);
		str_printf(out, " (%c", SUMMARY_QUOTE);
		command_list_add_label(out, c->longest);
		str_printf(out, "%c)", SUMMARY_UNQUOTE);
	}
	add_odd(out, summary->execs.timed_out, "ran into the time limit");
	add_odd(out, summary->execs.oom_killed, "killed: out of memory");
	add_odd(out, summary->execs.oom_kills,
		summary->execs.oom_kills == 1 ? "of its processes killed: out of memory"
					      : "of their processes killed: out of memory");
	add_odd(out, summary->execs.pids_limited, "ran into the limit on processes");
	add_odd(out, summary->execs.disk_full, "ran into the disk limit");
	add_odd(out, summary->execs.interrupted, "cut off");
	add_odd(out, summary->execs.started - summary->execs.ended, "without an end in the record");
	add_odd(out, summary->execs.left_running,
		summary->execs.left_running == 1 ? "process left running"
						 : "processes left running");
}

static void add_programs(struct summary_lines *lines, const struct summary_counts *c)
{
	struct str *out = summary_lines_add(lines, SUMMARY_PLAIN, "Programs");

	if (!c->has_processes) {
		str_puts(out, "not watched");
		return;
	}
	view_text_add_count(out, (int64_t)c->programs.started);
	str_puts(out, " started, ");
	view_text_add_count(out, (int64_t)c->programs.failed);
	str_puts(out, " failed");
	if (c->programs.running > 0)
		str_printf(out, ", %llu without an end in the record",
			(unsigned long long)c->programs.running);
}

/* What is counted and not listed; of several such folders one number. */
static void add_skipped(struct str *out, const struct changes_counts *root)
{
	size_t modules = root->skipped - root->skipped_git;

	if (root->skipped_git > 0)
		str_printf(out, "; .git: %zu changed", root->skipped_git);
	if (modules > 0)
		str_printf(out, "; node_modules: %zu changed", modules);
}

/* "4 changed, 1 added (tests/test_leap.py), 0 removed" */
static void add_root(
	const struct summary *summary, struct str *out, const struct changes_counts *root)
{
	size_t changed = root->changed + root->renamed + root->mode_changed;

	if (root->counted) {
		summary_lines_quote(out, slice_of(root->root), 40);
		str_printf(out, ": %zu of the agent's own", root->n_files);
	} else if (!root->cow) {
		summary_lines_quote(out, slice_of(root->root), 40);
		if (changes_json_total(root) + root->skipped == 0)
			str_puts(out, " unchanged");
		else
			str_printf(out, ": %zu changed, %zu added, %zu removed", changed,
				root->added, root->removed);
	} else {
		str_printf(out, "%zu changed, %zu added", changed, root->added);
		if (root->added_path) {
			str_puts(out, " (");
			quote_path(summary, out, slice_of(root->added_path), 60);
			str_putc(out, ')');
		}
		str_printf(out, ", %zu removed", root->removed);
	}
	add_skipped(out, root);
	if (root->unread) {
		str_puts(out, " (not all could be read: ");
		summary_lines_quote(out, slice_of(root->unread), 60);
		str_putc(out, ')');
	}
}

static size_t count_cow(const struct summary *summary)
{
	size_t n = 0;

	for (size_t i = 0; i < summary->changes.n; i++)
		n += summary->changes.roots[i].cow;
	return n;
}

static void add_compared(struct summary *summary, struct str *out)
{
	bool names = count_cow(summary) > 1;

	for (size_t i = 0; i < summary->changes.n; i++) {
		const struct changes_counts *root = &summary->changes.roots[i];

		if (root->counted && root->n_files == 0 && !root->unread)
			continue; /* a home that is as it was made */
		if (out->len)
			str_puts(out, "; ");
		if (names && root->cow) {
			summary_lines_quote(out, slice_of(root->root), 40);
			str_puts(out, ": ");
		}
		add_root(summary, out, root);
	}
}

static void add_seen(struct str *out, const struct summary_counts *c)
{
	if (out->len)
		str_puts(out, "; ");
	view_text_add_count(out, c->created);
	str_puts(out, " created, ");
	view_text_add_count(out, c->written);
	str_puts(out, " written, ");
	view_text_add_count(out, c->deleted);
	str_puts(out, " deleted as seen by the kernel");
}

static void add_review(
	struct summary_lines *lines, size_t n, const char *one, const char *many, const char *words)
{
	struct str *out;

	if (n == 0)
		return;
	out = summary_lines_add(lines, SUMMARY_WARN, "REVIEW");
	summary_lines_number(out, (int64_t)n, one, many);
	str_puts(out, words);
}

/* What is in place already comes first. */
static void add_reviews(const struct summary *summary, struct summary_lines *lines)
{
	size_t in_place = 0, review = 0, host = 0;

	for (size_t i = 0; i < summary->changes.n; i++) {
		const struct changes_counts *root = &summary->changes.roots[i];

		*(root->rw ? &in_place : &review) += root->runs_on_host;
		host += root->rw ? 0 : root->host_changed;
	}
	add_review(lines, in_place, "file", "files",
		" changed in place that the host runs (hooks, settings, scripts): see `changes`");
	add_review(lines, review, "changed file", "changed files",
		" would run on the host (hooks, settings, scripts): see `changes`");
	add_review(lines, host, "file", "files", " changed on the host meanwhile, too");
}

static void add_files(
	struct summary *summary, struct summary_lines *lines, const struct summary_counts *c)
{
	struct str *out = summary_lines_add(lines, SUMMARY_PLAIN, "Files");

	if (summary->has_changes)
		add_compared(summary, out);
	if (c->has_files && out->len == 0)
		add_seen(out, c);
	if (out->len == 0)
		str_puts(out, "not watched, not compared");
	add_reviews(summary, lines);
}

static void add_sources(const struct summary *summary, struct str *out)
{
	for (size_t i = 0; i < summary->sources.n; i++) {
		if (i)
			str_puts(out, ", ");
		log_add_escaped(out, summary->sources.texts[i]);
	}
}

static void add_observed(struct summary *summary, struct summary_lines *lines)
{
	bool is_complete = summary_is_complete(summary);
	struct str *out =
		summary_lines_add(lines, is_complete ? SUMMARY_PLAIN : SUMMARY_BAD, "Observed");

	if (!summary->has_traced) {
		str_puts(out, "nothing from the kernel: ");
		if (summary->blind.n > 0)
			summary_lines_quote(out, summary->blind.texts[0], 0);
		else
			str_puts(out, "tracing was off");
		return;
	}
	add_sources(summary, out);
	str_puts(out, is_complete ? " complete: " : " NOT COMPLETE: ");
	summary_lines_number(out, summary->events, "event", "events");
	str_puts(out, ", ");
	view_text_add_count(out, summary->dropped);
	str_puts(out, " dropped, ");
	view_text_add_count(out, summary->n_blind);
	str_puts(out, " blind");
	if (summary->without_pid > 0)
		str_printf(out, ", %lld without a process", (long long)summary->without_pid);
	if (summary->missing > 0)
		str_printf(out, ", %lld missing from the record", (long long)summary->missing);
	if (summary->facts.is_cut)
		str_puts(out, ", the end is cut off");
	summary_network_observed(summary, out);
	add_reasons(lines, &summary->blind, "BLIND", SUMMARY_BAD);
}

/* unit: behind the number; is_size: which is one of bytes. */
static void add_limit(struct str *out, const struct summary *summary, const char *key, bool is_size,
	const char *unit)
{
	const json_t *v = summary_spec(summary, key);

	if (!v || json_number_value(v) <= 0)
		return;
	str_puts(out, "; ");
	if (is_size)
		view_text_add_bytes(out, (int64_t)json_number_value(v));
	else
		str_printf(out, "%g", json_number_value(v));
	str_puts(out, unit);
}

static void add_mounts(struct str *out, const struct summary *summary)
{
	const json_t *mounts = summary_spec(summary, "mounts"), *mount;
	size_t i, told = 0, more = 0;

	json_array_foreach(mounts, i, mount)
	{
		const char *guest = json_string_value(json_object_get(mount, "guest"));
		const char *mode = json_string_value(json_object_get(mount, "mode"));

		if (!guest || !mode || json_is_true(json_object_get(mount, "internal")) ||
			json_is_true(json_object_get(mount, "profile")))
			continue;
		if (told++ >= MOUNTS_TOLD) {
			more++;
			continue;
		}
		str_puts(out, "; ");
		summary_lines_quote(out, slice_of(guest), 50);
		str_putc(out, ' ');
		log_add_escaped(out, slice_of(mode));
	}
	if (more)
		str_printf(out, "; %zu more mounts", more);
}

static void add_profile(struct str *out, const struct summary *summary)
{
	const char *profile = json_string_value(summary_spec(summary, "profile"));

	if (!profile)
		return;
	str_puts(out, "; profile ");
	summary_lines_quote(out, slice_of(profile), 40);
}

#define DIGEST_SHOWN 19 /* "sha256:" and 12 digits, as people compare them */

static void add_image(struct str *out, const struct summary *summary)
{
	const char *image = json_string_value(summary_spec(summary, "image"));
	const char *digest = json_string_value(summary_spec(summary, "image_digest"));

	if (!image)
		return;
	str_puts(out, "; image ");
	summary_lines_quote(out, slice_of(image), 60);
	if (!digest)
		return;
	str_puts(out, " (");
	summary_lines_quote(
		out, (struct slice){.p = digest, .len = strnlen(digest, DIGEST_SHOWN)}, 0);
	str_putc(out, ')');
}

static void add_enforced(struct summary *summary, struct summary_lines *lines)
{
	struct str *out = summary_lines_add(lines, SUMMARY_PLAIN, "Enforced");
	int64_t probes = 0;

	if (!summary->meta) {
		str_puts(out, "not known: meta.json is missing or cannot be read");
		return;
	}
	summary_network_enforced(summary, out);
	add_image(out, summary);
	add_mounts(out, summary);
	add_profile(out, summary);
	add_limit(out, summary, "memory_bytes", true, "");
	add_limit(out, summary, "disk_bytes", true, " of disk");
	add_limit(out, summary, "cpus", false, " CPUs");
	add_limit(out, summary, "pids", false, " processes");
	for (size_t i = 0; i < summary->refused.n; i++)
		probes += summary->refused.rows[i].is_aside ? summary->refused.rows[i].count : 0;
	if (probes > 0) {
		str_puts(out, "; ");
		summary_lines_number(out, probes, "probe", "probes");
		str_puts(out, " for calls that are not offered");
	}
}

static const char *seal_text(const struct summary *summary, const char *key)
{
	return json_string_value(json_object_get(summary->seal, key));
}

static void add_sealed(struct summary *summary, struct summary_lines *lines)
{
	const char *head = seal_text(summary, "head"), *key = seal_text(summary, "fingerprint");
	const char *end = seal_text(summary, "end");
	struct str *out = summary_lines_add(
		lines, summary->facts.is_cut ? SUMMARY_BAD : SUMMARY_PLAIN, "Sealed");
	size_t len = head ? strlen(head) : 0;

	if (!head || !key || len < 8) {
		str_puts(out, "not sealed");
		return;
	}
	str_printf(out, "head %.4s...%s, host key ", head, head + len - 2);
	log_add_escaped(out, (struct slice){.p = key, .len = strnlen(key, 5)});
	str_puts(out, "...");
	if (end && strcmp(end, "open") == 0)
		str_puts(out, "; still open");
	else if (end && strcmp(end, "suspended") == 0)
		str_puts(out, "; suspended, more may follow");
	else if (summary->facts.is_cut || (end && strcmp(end, "cut") == 0))
		str_puts(out, "; closed by cleaning up, its writer died");
}

static void add_command(struct str *out, const char *program, const char *verb, const char *ref)
{
	str_printf(out, "%c%s %s %s%c", SUMMARY_QUOTE, program, verb, ref, SUMMARY_UNQUOTE);
}

/* "2 files changed and 6,178 in node_modules" */
static void add_pending(struct str *out, const struct summary_counts *c)
{
	int64_t skipped = c->pending_git + c->pending_modules;

	if (c->pending > 0) {
		summary_lines_number(out, c->pending, "file", "files");
		str_puts(out, " changed");
	}
	if (skipped == 0)
		return;
	str_puts(out, c->pending > 0 ? " and " : "");
	if (c->pending > 0)
		view_text_add_count(out, skipped);
	else
		summary_lines_number(out, skipped, "file", "files");
	str_puts(out, c->pending > 0 ? " in " : " changed in ");
	str_puts(out, c->pending_git > 0 ? ".git" : "");
	str_puts(out, c->pending_git > 0 && c->pending_modules > 0 ? " and " : "");
	str_puts(out, c->pending_modules > 0 ? "node_modules" : "");
}

static void add_next(struct summary *summary, bool is_here, struct summary_lines *lines,
	const struct summary_counts *c)
{
	const struct summary_facts *facts = &summary->facts;
	const char *ref = facts->ref ? facts->ref : facts->id;
	struct str *out;

	if (c->pending + c->pending_git + c->pending_modules <= 0)
		return;
	out = summary_lines_add(lines, SUMMARY_WARN, NULL);
	add_pending(out, c);
	str_puts(out, ", not yet in your folder:");
	str_puts(out, "  ");
	add_command(out, is_here && facts->to_read ? facts->to_read : "cloche", "changes", ref);
	str_puts(out, "   ");
	add_command(out, is_here && facts->to_apply ? facts->to_apply : "cloche", "apply", ref);
}

void summary_lines_make(struct summary *summary, bool is_here, struct summary_lines *ret_lines)
{
	struct summary_counts counts;

	*ret_lines = (struct summary_lines){0};
	summary_count(summary, &counts);
	add_head(summary, ret_lines, &counts);
	add_commands(summary, ret_lines, &counts);
	add_programs(ret_lines, &counts);
	add_files(summary, ret_lines, &counts);
	summary_network_line(summary, ret_lines);
	summary_asked_line(summary, ret_lines);
	summary_stats_line(summary, ret_lines);
	str_puts(summary_lines_add(ret_lines, SUMMARY_PLAIN, "Account"), "not watched (no server)");
	add_observed(summary, ret_lines);
	add_enforced(summary, ret_lines);
	add_sealed(summary, ret_lines);
	add_next(summary, is_here, ret_lines, &counts);
}

void summary_lines_title(const struct summary *summary, struct str *out)
{
	const json_t *task = summary_spec(summary, "task");
	char start[CLOCK_TEXT_LEN], end[CLOCK_TEXT_LEN];

	str_puts(out, "cloche ");
	log_add_escaped(out, slice_of(summary->facts.id));
	if (summary->first_ms) {
		clock_format(summary->first_ms, start);
		clock_format(summary->ended_ms ? summary->ended_ms : summary->last_ms, end);
		str_printf(out, "  %.10s %.8s-", start, start + 11);
		if (memcmp(start, end, 10) != 0)
			str_printf(out, "%.10s ", end);
		str_printf(out, "%.8s UTC", end + 11);
	}
	if (json_is_string(task)) {
		str_puts(out, "  task \"");
		summary_lines_quote(out, slice_of(json_string_value(task)), 60);
		str_putc(out, '"');
	}
}
