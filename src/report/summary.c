/* SPDX-License-Identifier: Apache-2.0 */
#include "report/summary.h"

#include <errno.h>
#include <stdlib.h>

#include "report/summary_internal.h"
#include "util/mem.h"
#include "view/file_access.h"
#include "view/program_class.h"
#include "view/saturate.h"
#include "view/view_filter.h"

static void on_refusal(void *ctx, const struct event *ev, const struct process_node *node);

static json_t *read_object(struct slice text)
{
	json_error_t why;
	json_t *root = text.len ? json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why) : NULL;

	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

struct summary *summary_new(const struct summary_facts *facts)
{
	const struct view_filter filter = {0};
	struct summary *summary = new0(struct summary);

	summary->facts = *facts;
	summary->intern = intern_new();
	summary->commands = command_list_new(&filter);
	summary->files = file_table_new(&filter);
	summary->network = network_table_new(&filter);
	network_table_leave_bodies(summary->network);
	summary->refused.index = map_new();
	summary->denied.index = map_new();
	summary->hosts_refused.index = map_new();
	summary->misused.index = map_new();
	summary->asked.index = map_new();
	summary->blind.index = map_new();
	summary->hints.index = map_new();
	summary->errors.index = map_new();
	summary->sources.index = map_new();
	summary->meta = read_object(facts->meta);
	summary->seal = read_object(facts->seal);
	summary->has_changes =
		facts->changes.len && changes_json_read(facts->changes, &summary->changes) == 0;
	stats_totals_init(&summary->stats);
	command_list_watch(summary->commands, on_refusal, summary);
	return summary;
}

void summary_free(struct summary *summary)
{
	if (!summary)
		return;
	if (summary->has_changes)
		changes_json_counts_done(&summary->changes);
	json_decref(summary->meta);
	json_decref(summary->seal);
	free(summary->refused.rows);
	free(summary->denied.rows);
	free(summary->hosts_refused.rows);
	free(summary->misused.rows);
	free(summary->asked.items);
	map_free(summary->asked.index);
	map_free(summary->refused.index);
	map_free(summary->denied.index);
	map_free(summary->hosts_refused.index);
	map_free(summary->misused.index);
	map_free(summary->blind.index);
	map_free(summary->hints.index);
	map_free(summary->errors.index);
	map_free(summary->sources.index);
	file_table_free(summary->files);
	network_table_free(summary->network);
	command_list_free(summary->commands);
	intern_free(summary->intern);
	free(summary);
}

void summary_note_reason(
	struct summary *summary, struct summary_reasons *reasons, struct slice text)
{
	void **slot;

	if (reasons->n == SUMMARY_REASONS_MAX && !map_find(reasons->index, text))
		return;
	slot = map_slot(reasons->index, text);
	if (!*slot) {
		reasons->texts[reasons->n++] = intern_text(summary->intern, text);
		*slot = (void *)(uintptr_t)reasons->n;
	}
	reasons->counts[(uintptr_t)*slot - 1]++;
}

/* A row that is kept has its texts from us. */
static void own_row(struct summary *summary, struct summary_row *row)
{
	struct slice *texts[] = {&row->what, &row->rule, &row->program, &row->exec,
		&row->place.host, &row->place.address, &row->place.protocol, &row->place.method,
		&row->place.url, &row->place.reason, &row->place.where};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = intern_text(summary->intern, *texts[i]);
}

static void note_row(
	struct summary *summary, struct summary_rows *rows, const struct summary_row *row)
{
	scoped_str struct str key = {0};
	void **slot;

	str_add(&key, row->what.p, row->what.len);
	str_printf(&key, "%c%s%c", 0, row->how, 0);
	str_add(&key, row->program.p, row->program.len);
	if (rows->n == SUMMARY_ROWS_MAX && !map_find(rows->index, str_slice(&key))) {
		rows->more++;
		return;
	}
	slot = map_slot(rows->index, str_slice(&key));
	if (!*slot) {
		rows->rows = mem_grow(rows->rows, rows->n + 1, sizeof(*rows->rows));
		rows->rows[rows->n] = *row;
		own_row(summary, &rows->rows[rows->n]);
		rows->n++;
		*slot = (void *)(uintptr_t)rows->n;
	}
	rows->rows[(uintptr_t)*slot - 1].count++;
}

static const char *how_of(const struct event *ev)
{
	switch ((int)ev->kind) {
	case EVENT_PROCESS_EXEC:
		return "run";
	case EVENT_FILE_RENAME:
		return "rename";
	case EVENT_FILE_DELETE:
		return "delete";
	case EVENT_FILE_TRUNCATE:
		return "write";
	case EVENT_FILE_LINK:
		return "link";
	case EVENT_FILE_MODE:
		return slice_is(ev->what, "owner") ? "change owner" : "change mode";
	case EVENT_DIR_CREATE:
		return "create";
	default:
		break;
	}
	if (event_has(ev, create) && ev->create)
		return "create";
	return file_access_changes(ev) ? "write" : "read";
}

/* What a program tries to see whether it is there, and goes on without. */
static bool is_probe(const struct event *ev)
{
	return event_has(ev, result) && ev->result == ENOSYS;
}

static void on_refusal(void *ctx, const struct event *ev, const struct process_node *node)
{
	struct summary *summary = ctx;
	struct summary_row row = {.node = node, .exec = ev->exec};

	if (ev->internal)
		return;
	if (node)
		row.program = program_class_name(node->argv, node->path);
	if (ev->kind == EVENT_SANDBOX_REFUSED) {
		row.what = ev->call;
		row.rule = ev->rule;
		row.how = event_errno_name(event_has(ev, result) ? ev->result : EPERM);
		row.is_aside = is_probe(ev);
		note_row(summary, &summary->refused, &row);
		return;
	}
	if (ev->kind == EVENT_NET_REFUSED || ev->kind == EVENT_SECRET_MISUSE) {
		scoped_str struct str what = {0};

		summary_network_row(ev, &what, &row);
		note_row(summary,
			ev->kind == EVENT_NET_REFUSED ? &summary->hosts_refused : &summary->misused,
			&row);
		return;
	}
	row.what = ev->kind == EVENT_FILE_RENAME ? ev->from : ev->path;
	row.how = how_of(ev);
	row.is_aside = view_filter_is_kernel_path(row.what);
	note_row(summary, &summary->denied, &row);
}

static void take_exec_end(struct summary *summary, const struct event *ev)
{
	summary->execs.ended++;
	summary->execs.timed_out += ev->timed_out;
	summary->execs.oom_killed += ev->oom_killed;
	if (!ev->oom_killed)
		summary->execs.oom_kills = saturate_add(summary->execs.oom_kills, ev->oom_kills);
	summary->execs.pids_limited += ev->pids_limited;
	summary->execs.disk_full += ev->disk_full;
	summary->execs.interrupted += ev->interrupted;
	summary->execs.left_running = saturate_add(summary->execs.left_running, ev->left_running);
}

static void take_gap(struct summary *summary, const struct event *ev)
{
	if (ev->kind == EVENT_TRACE_DROPPED) {
		/* One that says nothing was lost says that something went wrong. */
		summary->dropped = saturate_add(summary->dropped, ev->count > 0 ? ev->count : 1);
		return;
	}
	summary->n_blind++;
	summary_note_reason(summary, &summary->blind, ev->reason);
}

static void take_life(struct summary *summary, const struct event *ev)
{
	if (ev->kind == EVENT_SANDBOX_STOPPED || ev->kind == EVENT_SANDBOX_REMOVED)
		summary->ended_ms = ev->wall_ms;
	if (ev->kind == EVENT_SANDBOX_STOPPED)
		summary->stop_reason = intern_text(summary->intern, ev->reason);
	if (ev->kind == EVENT_SANDBOX_ERROR)
		summary_note_reason(summary, &summary->errors, ev->reason);
	if (ev->kind == EVENT_HINT)
		summary_note_reason(
			summary, &summary->hints, ev->advice.len ? ev->advice : ev->reason);
}

static void take_started(struct summary *summary, const struct event *ev)
{
	summary->has_traced = true;
	for (size_t i = 0; i < ev->sources.n; i++)
		summary_note_reason(summary, &summary->sources, ev->sources.items[i]);
}

void summary_add(struct summary *summary, const struct event *ev)
{
	if (!summary->first_ms)
		summary->first_ms = ev->wall_ms;
	summary->last_ms = ev->wall_ms;
	summary->events++;
	if (ev->seq > summary->last_seq) {
		summary->missing = saturate_add(
			summary->missing, (int64_t)((ev->seq - summary->last_seq - 1) & INT64_MAX));
		summary->last_seq = ev->seq;
	}
	if (view_filter_lacks_process(ev))
		summary->without_pid++;
	if (ev->kind == EVENT_EXEC_START)
		summary->execs.started++;
	else if (ev->kind == EVENT_EXEC_END)
		take_exec_end(summary, ev);
	else if (ev->kind == EVENT_EXEC_LATE)
		summary->execs.late_bytes = saturate_add(summary->execs.late_bytes, ev->bytes);
	else if (ev->kind == EVENT_TRACE_DROPPED || ev->kind == EVENT_TRACE_BLIND)
		take_gap(summary, ev);
	else if (ev->kind == EVENT_TRACE_STARTED)
		take_started(summary, ev);
	else if (ev->kind == EVENT_NET_GATEWAY || ev->kind == EVENT_NET_RULES)
		summary_network_take(summary, ev);
	else if (ev->kind == EVENT_NET_ASKED)
		summary_asked_take(summary, ev);
	else
		take_life(summary, ev);
	stats_totals_add(&summary->stats, ev);
	command_list_add(summary->commands, ev);
	file_table_add(summary->files, ev);
	network_table_add(summary->network, ev);
}

bool summary_watched(const struct summary *summary, const char *source)
{
	return map_find(summary->sources.index, slice_of(source)) != NULL;
}

bool summary_is_complete(const struct summary *summary)
{
	return summary->has_traced && summary->dropped == 0 && summary->n_blind == 0 &&
	       summary->without_pid == 0 && summary->missing == 0 && !summary->facts.is_cut;
}

const json_t *summary_spec(const struct summary *summary, const char *key)
{
	return json_object_get(json_object_get(summary->meta, "spec"), key);
}

static void count_commands(struct summary *summary, struct summary_counts *c)
{
	size_t n = command_list_settle(summary->commands);

	for (size_t i = 0; i < n; i++) {
		const struct command *command = command_list_get(summary->commands, i);

		if (command->is_agent)
			continue; /* its commands stand for it */
		c->commands++;
		c->derived += command->derived;
		c->failed += command_list_is_failed(command);
		if (command->has_ended &&
			(!c->longest || command->duration_ms > c->longest->duration_ms))
			c->longest = command;
	}
}

static void count_files(struct summary *summary, struct summary_counts *c)
{
	size_t n = file_table_settle(summary->files);

	for (size_t i = 0; i < n; i++) {
		const struct file_entry *entry = file_table_get(summary->files, i);

		if (entry->directory)
			continue;
		c->created += entry->created;
		c->written += entry->written && !entry->created;
		c->deleted += entry->deleted;
		c->renamed += entry->renamed_to.len > 0;
	}
}

void summary_count(struct summary *summary, struct summary_counts *ret_counts)
{
	struct summary_counts *c = ret_counts;

	*c = (struct summary_counts){0};
	c->has_processes = summary_watched(summary, "processes");
	c->has_files = summary_watched(summary, "files");
	count_commands(summary, c);
	process_tree_count(command_list_tree(summary->commands), &c->programs);
	count_files(summary, c);
	for (size_t i = 0; i < summary->changes.n; i++) {
		const struct changes_counts *root = &summary->changes.roots[i];

		if (!root->cow)
			continue;
		c->added += (int64_t)root->added;
		c->removed += (int64_t)root->removed;
		c->changed += (int64_t)(root->changed + root->renamed + root->mode_changed);
		c->pending += (int64_t)changes_json_total(root);
		c->pending_git += (int64_t)root->skipped_git;
		c->pending_modules += (int64_t)(root->skipped - root->skipped_git);
	}
	if (summary->facts.pending < 0)
		return;
	c->pending = summary->facts.pending;
	c->pending_git = summary->facts.pending_git;
	c->pending_modules = summary->facts.pending_modules;
}
