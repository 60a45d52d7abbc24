/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/exec_row.h"

#include <errno.h>

#include "proto/files_wire.h"
#include "supervisor/metering.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/mem.h"

struct row_texts { /* what a row's event points at */
	char out_hash[DIGEST_HEX_SIZE], err_hash[DIGEST_HEX_SIZE];
	struct str out, err;
};

static struct slice *slices_of(const struct spec_words *words)
{
	struct slice *items = new0_n(struct slice, words->n);

	for (size_t i = 0; i < words->n; i++)
		items[i] = slice_of(words->items[i]);
	return items;
}

/* Names of the variables that were set, never their values. */
static struct slice *names_of(const struct spec_words *env)
{
	struct slice *items = slices_of(env);

	for (size_t i = 0; i < env->n; i++)
		items[i].len = strcspn(env->items[i], "=");
	return items;
}

static void label_json(struct str *out, const struct spec *spec)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	for (size_t i = 0; i < spec->n_labels; i++) {
		jsonw_free_key(&j, slice_of(spec->labels[i].key));
		jsonw_text(&j, spec->labels[i].value);
	}
	jsonw_object_end(&j);
}

static void set_who(struct event *ev, const struct spec *spec, const struct spec_exec *exec)
{
	event_set_text(ev, account, spec->account);
	event_set_text(ev, agent, spec->agent);
	event_set_text(ev, task_text, spec->task);
	event_set_text(ev, work_item, spec->work_item);
	event_set_text(ev, source, exec->source);
	event_set_text(ev, via, exec->via);
	event_set_text(ev, actor, exec->actor);
	event_set_text(ev, operation, exec->operation ? exec->operation : "exec");
	event_set_text(ev, command, exec->command);
	event_set_text(ev, cwd, exec->cwd);
	event_set_text(ev, user, exec->user ? exec->user : "root");
	if (exec->terminal)
		event_set(ev, terminal, true);
}

/* What was asked for and, once it has worked, the place that was used for it, which the program writes on its second
 * output. */
static void add_detail(const struct exec_row *row, struct str *out)
{
	scoped_str struct str used = {0};
	struct jsonw j = jsonw_to(out);
	const char *asked = row->spec->detail; /* an object, as we wrote it */
	size_t open_len = strlen(asked) - 1;

	str_add(out, asked, open_len);
	if (row->ended_ns && row->exit.code == FILES_WIRE_OK && row->streams)
		(void)clip_text(&row->streams[1].clip, &used);
	if (used.len > 0) {
		j.comma = open_len > 1;
		jsonw_kslice(&j, "used", str_slice(&used));
	}
	jsonw_object_end(&j);
}

/* Emits ev with the members that both lines share; they live on this stack only. */
static void emit_with_shared(struct supervisor *sup, const struct exec_row *row, struct event *ev)
{
	scoped_mem struct slice *argv = slices_of(&row->spec->argv);
	scoped_mem struct slice *env_names = names_of(&row->spec->env);
	scoped_str struct str labels = {0}, detail = {0};
	char started_at[CLOCK_TEXT_LEN];

	if (row->spec->detail) {
		add_detail(row, &detail);
		event_set(ev, detail, str_slice(&detail));
	}
	label_json(&labels, sup->spec);
	clock_format(row->started_wall_ms, started_at);
	ev->exec = slice_of(row->exec_id);
	set_who(ev, sup->spec, row->spec);
	if (row->id)
		event_set(ev, id, row->id);
	if (!row->spec->command)
		event_set(ev, argv, ((struct event_list){.items = argv, .n = row->spec->argv.n}));
	event_set(ev, env_names, ((struct event_list){.items = env_names, .n = row->spec->env.n}));
	event_set(ev, started_at, slice_of(started_at));
	event_set(ev, labels, str_slice(&labels));
	recorder_emit_now(sup->recorder, ev);
}

void exec_row_start(struct supervisor *sup, const struct exec_row *row)
{
	struct event ev = {.kind = EVENT_EXEC_START};

	emit_with_shared(sup, row, &ev);
}

static int exit_code_of(const struct exec_row *row)
{
	if (row->exec_errno)
		return !row->failure && (row->exec_errno == ENOENT || row->exec_errno == ENOTDIR)
		               ? 127
		               : 126;
	return row->exit.code;
}

static void set_used(struct event *ev, const struct exec_row *row)
{
	METERING_SET(ev, cpu_ms, metering_cpu_ms(&row->used));
	if (row->limited.cpu_throttled_us >= 1000)
		event_set(ev, cpu_throttled_ms, row->limited.cpu_throttled_us / 1000);
	METERING_SET(ev, memory_peak_bytes, row->used.memory_peak_bytes);
	METERING_SET(ev, rss_max_bytes, row->exit.rss_max_bytes);
	METERING_SET(ev, threads_peak, row->used.threads_peak);
	METERING_SET(ev, disk_read_bytes, row->exit.disk_read_bytes);
	METERING_SET(ev, disk_write_bytes, row->exit.disk_write_bytes);
}

static void set_outcome(struct event *ev, const struct exec_row *row)
{
	if (row->exec_errno)
		event_set(ev, result, row->exec_errno);
	event_set_text(ev, reason, row->failure);
	if (row->exit.signal)
		event_set(ev, signal, row->exit.signal);
	else if (!row->interrupted)
		event_set(ev, exit_code, exit_code_of(row));
	event_set(ev, timed_out, row->timed_out);
	event_set(ev, oom_killed, row->exit.oom_killed);
	if (row->limited.oom_kills > 0)
		event_set(ev, oom_kills, row->limited.oom_kills);
	event_set(ev, pids_limited, row->limited.pids_refused > 0);
	event_set(ev, disk_full, row->disk_full);
	if (row->interrupted)
		event_set(ev, interrupted, true);
	if (row->n_left > 0)
		event_set(ev, left_running, row->n_left);
	if (!row->slice_complete)
		event_set(ev, slice_complete, false);
	event_set(ev, duration_ms, (row->ended_ns - row->started_ns) / CLOCK_NS_PER_MS);
}

bool exec_row_is_whole(const struct exec_row *row)
{
	return !row->exec_errno && !row->exit.signal && !row->timed_out && !row->interrupted &&
	       row->exit.code < FILES_WIRE_FAILED;
}

void exec_row_fail(struct supervisor *sup, const struct exec_row *row)
{
	struct event ev = {.kind = EVENT_SANDBOX_ERROR, .exec = slice_of(row->exec_id)};
	scoped_str struct str why = {0};
	scoped_mem char *reason = NULL;

	if (row->streams)
		(void)clip_text(&row->streams[1].clip, &why);
	reason = mem_printf("%s did not come to an end: %s", row->spec->operation,
		row->failure       ? row->failure
		: row->timed_out   ? "it took too long"
		: row->interrupted ? "the sandbox ended"
		: row->exit.signal ? "its process was killed"
		: why.len > 0      ? why.p
				   : "its process failed");
	event_set_text(&ev, reason, reason);
	recorder_emit_now(sup->recorder, &ev);
}

static void set_streams(struct event *ev, const struct exec_row *row, struct row_texts *texts)
{
	/* What an operation says of the place it used is in its detail. */
	bool has_err = !row->spec->operation || row->exit.code != FILES_WIRE_OK;
	bool cut = clip_text(&row->streams[0].clip, &texts->out);

	cut |= has_err && clip_text(&row->streams[1].clip, &texts->err);
	digest_value_hex(&row->streams[0].clip.digest, texts->out_hash);
	event_set(ev, stdout_text, str_slice(&texts->out));
	event_set(ev, stdout_bytes, (int64_t)row->streams[0].clip.bytes);
	event_set(ev, stdout_sha256, slice_of(texts->out_hash));
	event_set(ev, output_truncated, cut);
	if (!has_err)
		return;
	digest_value_hex(&row->streams[1].clip.digest, texts->err_hash);
	event_set(ev, stderr_text, str_slice(&texts->err));
	event_set(ev, stderr_bytes, (int64_t)row->streams[1].clip.bytes);
	event_set(ev, stderr_sha256, slice_of(texts->err_hash));
}

void exec_row_end(struct supervisor *sup, const struct exec_row *row)
{
	struct event ev = {.kind = EVENT_EXEC_END};
	struct row_texts texts = {0};
	struct event_list refused = recorder_hosts_refused(sup->recorder, row->exec_id);

	set_outcome(&ev, row);
	set_used(&ev, row);
	if (refused.n)
		event_set(&ev, hosts_refused, refused);
	if (row->streams)
		set_streams(&ev, row, &texts);
	emit_with_shared(sup, row, &ev);
	recorder_forget_hosts(sup->recorder, row->exec_id);
	str_done(&texts.out);
	str_done(&texts.err);
}

void exec_row_answer(const struct exec_row *row, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "exec", row->exec_id);
	jsonw_key(&j, "row");
	jsonw_object(&j);
	if (row->exit.signal)
		jsonw_kint(&j, "signal", row->exit.signal);
	else
		jsonw_kint(&j, "exit_code", exit_code_of(row));
	if (row->exec_errno)
		jsonw_ktext(&j, "result", event_errno_name(row->exec_errno));
	if (row->failure)
		jsonw_ktext(&j, "reason", row->failure);
	jsonw_kbool(&j, "timed_out", row->timed_out);
	jsonw_kbool(&j, "oom_killed", row->exit.oom_killed);
	jsonw_kint(&j, "oom_kills", row->limited.oom_kills);
	jsonw_kbool(&j, "pids_limited", row->limited.pids_refused > 0);
	jsonw_kbool(&j, "disk_full", row->disk_full);
	jsonw_kbool(&j, "interrupted", row->interrupted);
	jsonw_kint(&j, "left_running", row->n_left);
	jsonw_kint(&j, "duration_ms", (row->ended_ns - row->started_ns) / CLOCK_NS_PER_MS);
	jsonw_object_end(&j);
	jsonw_object_end(&j);
}
