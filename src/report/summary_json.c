/* SPDX-License-Identifier: Apache-2.0 */
/* Every number and list in full. What nobody looked at is {"watched": false, "reason"} or null, never empty. */
#include <stdlib.h>

#include "report/summary_internal.h"
#include "util/clock.h"
#include "util/jsonw.h"

static void write_time(struct jsonw *j, const char *key, int64_t wall_ms)
{
	char text[CLOCK_TEXT_LEN];

	if (!wall_ms) {
		jsonw_knull(j, key);
		return;
	}
	clock_format(wall_ms, text);
	jsonw_ktext(j, key, text);
}

/* JSON that was read, written again; null where there is none. */
static void write_parsed(struct jsonw *j, const char *key, const json_t *v)
{
	char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	jsonw_key(j, key);
	jsonw_raw(j, slice_of(text ? text : "null"));
	free(text);
}

static void write_row_command(
	struct summary *summary, struct jsonw *j, const struct summary_row *row)
{
	const struct command *command =
		row->node ? command_list_find(summary->commands, row->node) : NULL;
	scoped_str struct str line = {0};

	if (!command) {
		jsonw_knull(j, "command");
		return;
	}
	command_list_add_line(&line, command);
	jsonw_kslice(j, "command", str_slice(&line));
}

void summary_json_row_end(struct summary *summary, struct jsonw *j, const struct summary_row *row)
{
	if (row->program.len)
		jsonw_kslice(j, "program", row->program);
	else
		jsonw_knull(j, "program");
	write_row_command(summary, j, row);
	jsonw_kslice(j, "exec", row->exec);
	jsonw_kint(j, "count", row->count);
}

static void write_rows(struct summary *summary, struct jsonw *j, const char *key,
	const struct summary_rows *rows, bool is_path)
{
	bool is_watched = is_path ? summary_watched(summary, "files") : summary->has_traced;
	int64_t more = rows->more + (is_path ? 0 : summary->hosts_refused.more);

	if (!is_watched) {
		jsonw_knull(j, key);
		return;
	}
	jsonw_key(j, key);
	jsonw_array(j);
	if (!is_path)
		summary_network_json_refused(summary, j);
	for (size_t i = 0; i < rows->n; i++) {
		const struct summary_row *row = &rows->rows[i];

		jsonw_object(j);
		jsonw_kslice(j, is_path ? "path" : "call", row->what);
		jsonw_ktext(j, is_path ? "access" : "result", row->how);
		if (!is_path && row->rule.len)
			jsonw_kslice(j, "rule", row->rule);
		summary_json_row_end(summary, j, row);
		jsonw_kbool(j, is_path ? "kernel" : "probe", row->is_aside);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
	if (more > 0)
		jsonw_kint(j, is_path ? "denied_more" : "refused_more", more);
}

static void write_commands(struct summary *summary, struct jsonw *j, const struct summary_counts *c)
{
	scoped_str struct str list = {0}, label = {0};

	jsonw_key(j, "commands");
	jsonw_object(j);
	jsonw_kint(j, "count", c->commands);
	jsonw_kint(j, "derived", c->derived);
	jsonw_kint(j, "failed", c->failed);
	jsonw_kint(j, "timed_out", summary->execs.timed_out);
	jsonw_kint(j, "oom_killed", summary->execs.oom_killed);
	jsonw_kint(j, "oom_kills", summary->execs.oom_kills);
	jsonw_kint(j, "pids_limited", summary->execs.pids_limited);
	jsonw_kint(j, "disk_full", summary->execs.disk_full);
	jsonw_kint(j, "interrupted", summary->execs.interrupted);
	jsonw_kint(j, "without_end", summary->execs.started - summary->execs.ended);
	jsonw_kint(j, "left_running", summary->execs.left_running);
	jsonw_kint(j, "late_bytes", summary->execs.late_bytes);
	if (c->longest) {
		command_list_add_label(&label, c->longest);
		jsonw_key(j, "longest");
		jsonw_object(j);
		jsonw_kslice(j, "program", str_slice(&label));
		jsonw_kint(j, "duration_ms", c->longest->duration_ms);
		jsonw_object_end(j);
	} else {
		jsonw_knull(j, "longest");
	}
	command_list_json(summary->commands, &list);
	jsonw_key(j, "list");
	jsonw_raw(j, str_slice(&list));
	jsonw_object_end(j);
}

static void write_unwatched(struct jsonw *j, const char *key, const char *reason)
{
	jsonw_key(j, key);
	jsonw_object(j);
	jsonw_kbool(j, "watched", false);
	jsonw_ktext(j, "reason", reason);
	jsonw_object_end(j);
}

static void write_programs(struct summary *summary, struct jsonw *j, const struct summary_counts *c)
{
	scoped_str struct str tree = {0};

	if (!c->has_processes) {
		write_unwatched(j, "programs", "processes were not traced");
		return;
	}
	jsonw_key(j, "programs");
	jsonw_object(j);
	jsonw_kbool(j, "watched", true);
	jsonw_kint(j, "started", (int64_t)c->programs.started);
	jsonw_kint(j, "failed", (int64_t)c->programs.failed);
	jsonw_kint(j, "without_end", (int64_t)c->programs.running);
	jsonw_kint(j, "entered", (int64_t)c->programs.entered);
	process_tree_json(command_list_tree(summary->commands), &tree);
	jsonw_key(j, "tree");
	jsonw_raw(j, str_slice(&tree));
	jsonw_object_end(j);
}

/* added, changed, removed: of the cow mounts by content; null where nobody compared. */
static void write_compared(struct summary *summary, struct jsonw *j, const struct summary_counts *c)
{
	if (summary->has_changes) {
		jsonw_kint(j, "added", c->added);
		jsonw_kint(j, "changed", c->changed);
		jsonw_kint(j, "removed", c->removed);
		jsonw_key(j, "changes");
		jsonw_raw(j, summary->facts.changes);
		return;
	}
	jsonw_knull(j, "added");
	jsonw_knull(j, "changed");
	jsonw_knull(j, "removed");
	jsonw_knull(j, "changes");
}

static void write_files(struct summary *summary, struct jsonw *j, const struct summary_counts *c)
{
	scoped_str struct str list = {0};

	jsonw_key(j, "files");
	jsonw_object(j);
	jsonw_kbool(j, "watched", c->has_files);
	write_compared(summary, j, c);
	if (c->has_files) {
		jsonw_key(j, "seen");
		jsonw_object(j);
		jsonw_kint(j, "created", c->created);
		jsonw_kint(j, "written", c->written);
		jsonw_kint(j, "deleted", c->deleted);
		jsonw_kint(j, "renamed", c->renamed);
		jsonw_object_end(j);
		file_table_json(summary->files, &list);
		jsonw_key(j, "list");
		jsonw_raw(j, str_slice(&list));
	}
	jsonw_object_end(j);
}

static void write_reasons(struct jsonw *j, const char *key, const struct summary_reasons *reasons)
{
	jsonw_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; i < reasons->n; i++)
		jsonw_slice(j, reasons->texts[i]);
	jsonw_array_end(j);
}

static void write_observed(struct summary *summary, struct jsonw *j)
{
	jsonw_key(j, "observed");
	jsonw_object(j);
	jsonw_kbool(j, "traced", summary->has_traced);
	write_reasons(j, "sources", &summary->sources);
	jsonw_kint(j, "without_pid", summary->without_pid);
	jsonw_kint(j, "missing", summary->missing);
	write_reasons(j, "blind_reasons", &summary->blind);
	jsonw_kbool(j, "cut", summary->facts.is_cut);
	jsonw_object_end(j);
	write_reasons(j, "hints", &summary->hints);
	write_reasons(j, "errors", &summary->errors);
}

static void write_enforced(struct summary *summary, struct jsonw *j)
{
	static const char *const keys[] = {"rootfs", "image", "image_digest", "mounts", "hide",
		"profile", "memory_bytes", "cpus", "pids", "disk_bytes", "on_loss"};

	if (!summary->meta) {
		jsonw_knull(j, "enforced");
		return;
	}
	jsonw_key(j, "enforced");
	jsonw_object(j);
	summary_network_json_enforced(summary, j);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		write_parsed(j, keys[i], summary_spec(summary, keys[i]));
	jsonw_object_end(j);
}

static void write_end(struct summary *summary, struct jsonw *j, const struct summary_counts *c)
{
	write_parsed(j, "sealed", summary->seal);
	jsonw_kbool(j, "complete", summary_is_complete(summary));
	jsonw_kint(j, "dropped", summary->dropped);
	jsonw_kint(j, "blind", summary->n_blind);
	jsonw_kint(j, "events", summary->events);
	if (!summary->has_changes && summary->facts.pending < 0) {
		jsonw_knull(j, "changes_pending");
		jsonw_knull(j, "changes_pending_skipped");
		return;
	}
	jsonw_kint(j, "changes_pending", c->pending);
	jsonw_kint(j, "changes_pending_skipped", c->pending_git + c->pending_modules);
}

void summary_json(struct summary *summary, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	struct summary_counts counts;

	summary_count(summary, &counts);
	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", summary->facts.id);
	write_parsed(&j, "task", summary_spec(summary, "task"));
	write_parsed(&j, "agent", summary_spec(summary, "agent"));
	write_parsed(&j, "labels", summary_spec(summary, "labels"));
	write_time(&j, "started_at", summary->first_ms);
	write_time(&j, "ended_at", summary->ended_ms);
	write_rows(summary, &j, "refused", &summary->refused, false);
	write_rows(summary, &j, "denied", &summary->denied, true);
	summary_network_json_misused(summary, &j);
	summary_asked_json(summary, &j);
	write_commands(summary, &j, &counts);
	write_programs(summary, &j, &counts);
	write_files(summary, &j, &counts);
	summary_network_json(summary, &j);
	write_unwatched(&j, "account", "no server");
	summary_stats_json(summary, &j);
	write_observed(summary, &j);
	write_enforced(summary, &j);
	write_end(summary, &j, &counts);
	jsonw_object_end(&j);
}
