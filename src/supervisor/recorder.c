/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/recorder.h"

#include "supervisor/hint.h"
#include "supervisor/refused_hosts.h"
#include "util/clock.h"
#include "util/mem.h"

struct recorder {
	struct event_sink sink; /* first: emit gets back from it */
	struct recorder_config config;
	struct refused_hosts *refused;
	uint64_t unflushed;
	uint64_t n_lost; /* events that could not be written */
	uint64_t traced_since;
	bool has_hinted[HINT_N_KINDS];
	bool is_broken, is_blind;
};

static void broke(struct recorder *recorder, int error)
{
	if (recorder->is_broken)
		return;
	recorder->is_broken = true;
	recorder->config.on_broken(recorder->config.ctx, error);
}

/* The wall time of an event is that of its monotonic time, by the distance of both clocks at this moment:
 * a clock that jumps moves later events only. */
static int64_t wall_of(const struct recorder *recorder, int64_t guest_ns)
{
	int64_t ago_ns = clock_mono_ns() - recorder->config.start_ns - guest_ns;

	return clock_wall_ms() - ago_ns / CLOCK_NS_PER_MS;
}

/* Or about what was not seen of them. */
static bool is_about_files(const struct event *ev)
{
	return (ev->kind >= EVENT_FILE_OPEN && ev->kind <= EVENT_DIR_CREATE) ||
	       ev->kind == EVENT_TRACE_DROPPED || ev->kind == EVENT_TRACE_BLIND;
}

static void keep(struct recorder *recorder, struct event *ev)
{
	int r;

	if (ev->wall_ms == 0)
		ev->wall_ms = wall_of(recorder, ev->guest_ns);
	r = record_emit(recorder->config.record, ev, NULL);
	if (r < 0) {
		recorder->n_lost++;
		broke(recorder, r);
		return;
	}
	recorder->unflushed++;
	recorder->is_blind |= ev->kind == EVENT_TRACE_BLIND && ev->exec.len == 0;
	if (ev->kind == EVENT_TRACE_STARTED)
		recorder->traced_since = ev->seq;
	recorder->config.on_event(recorder->config.ctx);
	if (recorder->config.on_file && is_about_files(ev))
		recorder->config.on_file(recorder->config.ctx, ev);
}

/* Behind the first refusal of its kind: what a person can do about it. */
static void advise(struct recorder *recorder, const struct event *refused)
{
	int kind = hint_find(refused);
	struct event hint;

	if (kind < 0 || recorder->has_hinted[kind])
		return;
	recorder->has_hinted[kind] = true;
	hint_make((enum hint_kind)kind, refused, &hint);
	keep(recorder, &hint);
}

static void emit(struct event_sink *sink, struct event *ev)
{
	struct recorder *recorder = (struct recorder *)sink;

	keep(recorder, ev);
	if (ev->kind == EVENT_SANDBOX_REFUSED || ev->kind == EVENT_FILE_RENAME ||
		ev->kind == EVENT_MOUNT_RENAME)
		advise(recorder, ev);
	else if (ev->kind == EVENT_NET_REFUSED)
		refused_hosts_add(recorder->refused, ev);
}

struct recorder *recorder_new(const struct recorder_config *config)
{
	struct recorder *recorder = new0(struct recorder);

	recorder->config = *config;
	recorder->sink.emit = emit;
	recorder->refused = refused_hosts_new();
	return recorder;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	refused_hosts_free(recorder->refused);
	free(recorder);
}

struct event_sink *recorder_sink(struct recorder *recorder)
{
	return &recorder->sink;
}

void recorder_set_start(struct recorder *recorder, int64_t start_ns)
{
	recorder->config.start_ns = start_ns;
}

void recorder_emit_now(struct recorder *recorder, struct event *ev)
{
	ev->guest_ns = clock_mono_ns() - recorder->config.start_ns;
	emit(&recorder->sink, ev);
}

struct event_list recorder_hosts_refused(const struct recorder *recorder, const char *exec_id)
{
	return refused_hosts_of(recorder->refused, slice_of(exec_id));
}

void recorder_forget_hosts(struct recorder *recorder, const char *exec_id)
{
	refused_hosts_forget(recorder->refused, slice_of(exec_id));
}

void recorder_flush(struct recorder *recorder, bool sync)
{
	int r;

	if (recorder->unflushed == 0 && !sync)
		return;
	recorder->unflushed = 0;
	r = record_flush(recorder->config.record, sync);
	if (r < 0)
		broke(recorder, r);
}

void recorder_say_lost(struct recorder *recorder)
{
	struct event ev = {.kind = EVENT_TRACE_DROPPED};

	if (recorder->n_lost == 0)
		return;
	event_set(&ev, count, (int64_t)recorder->n_lost);
	event_set_text(&ev, reason, "the record could not be written");
	recorder->n_lost = 0;
	recorder_emit_now(recorder, &ev);
}

uint64_t recorder_traced_since(const struct recorder *recorder)
{
	return recorder->traced_since;
}

bool recorder_is_blind(const struct recorder *recorder)
{
	return recorder->is_blind;
}

bool recorder_is_broken(const struct recorder *recorder)
{
	return recorder->is_broken;
}
