/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/tracing.h"

#include <errno.h>

#include "observer/observer.h"
#include "observer/witness.h"
#include "util/clock.h"
#include "util/mem.h"

#define SETTLE_MS   100   /* an exec's result waits this long for the next of its events */
#define DRAIN_BATCH 20000 /* records between looks at the rest of the loop */

struct tracing {
	struct observer *observer;
	struct loop_io *io;
	struct loop_timer *timer;
	int64_t found_ns; /* when a drain last found something */
};

static void end_on_loss(struct supervisor *sup)
{
	struct observer_counts counts;

	observer_get_counts(sup->tracing->observer, &counts);
	if (counts.dropped > 0)
		supervisor_end(sup, "events were lost (--on-loss stop)");
}

/* By whichever thread of the observer's finds that it cannot keep up, or can again. */
static void hold(void *ctx, bool on)
{
	struct supervisor *sup = ctx;
	struct err err;

	if (on)
		(void)sandbox_freeze(
			sup->sandbox, SANDBOX_FREEZE_LOSS, &err); /* a loss is still counted */
	else
		(void)sandbox_thaw(sup->sandbox, SANDBOX_FREEZE_LOSS, &err);
}

static void drain(void *ctx)
{
	struct supervisor *sup = ctx;
	struct tracing *tracing = sup->tracing;
	int n = observer_drain(tracing->observer, DRAIN_BATCH);

	if (sup->spec->on_loss == SPEC_ON_LOSS_STOP)
		end_on_loss(sup);
	if (n > 0) {
		recorder_flush(sup->recorder, false);
		tracing->found_ns = clock_mono_ns();
		loop_timer_set(tracing->timer,
			n >= DRAIN_BATCH || observer_is_held(tracing->observer) ? 0
										: OBSERVER_POLL_MS);
		return;
	}
	if (clock_mono_ns() - tracing->found_ns < OBSERVER_QUIET_MS * CLOCK_NS_PER_MS) {
		loop_timer_set(tracing->timer, OBSERVER_POLL_MS);
		return;
	}
	if (observer_arm(tracing->observer))
		loop_timer_set(tracing->timer, 0);
	else if (observer_wait_ms(tracing->observer) >= 0)
		loop_timer_set(tracing->timer, observer_wait_ms(tracing->observer));
}

/* The first event after a quiet time, or a ring that fills faster than it is polled. */
static void on_wake(void *ctx, unsigned what)
{
	drain(ctx);
}

static unsigned sources_of(const struct spec *spec)
{
	return (spec->trace & SPEC_TRACE_PROCESSES ? OBSERVER_PROCESSES : 0) |
	       (spec->trace & SPEC_TRACE_FILES ? OBSERVER_FILES : 0) |
	       (spec->trace & SPEC_TRACE_OUTPUTS ? OBSERVER_OUTPUTS : 0) |
	       (spec->trace & SPEC_TRACE_MOUNTS ? OBSERVER_MOUNTS : 0);
}

void tracing_on_mount(void *ctx, int mount_fd, const struct spec_mount *mount)
{
	struct supervisor *sup = ctx;
	struct err err;
	int r = 0;

	if (!(sup->spec->trace & SPEC_TRACE_MOUNTS) || sup->witness_fault)
		return;
	if (!sup->witness)
		r = witness_open(sup->spec->on_loss != SPEC_ON_LOSS_CONTINUE, &sup->witness, &err);
	if (r == 0)
		r = witness_watch(sup->witness, mount_fd, &err);
	if (r < 0)
		sup->witness_fault = mem_printf("%s: %s", mount->guest, err.msg);
}

static void say_blind(
	struct supervisor *sup, const char *what, const char *why, const char *source_lost)
{
	scoped_mem char *reason = mem_printf("%s: %s", what, why);
	struct event ev = {.kind = EVENT_TRACE_BLIND};

	event_set_text(&ev, reason, reason);
	event_set_text(&ev, source_lost, source_lost);
	recorder_emit_now(sup->recorder, &ev);
}

/* The gateway sees the network where there is one, whatever becomes of the observer. */
static bool sees_network(const struct supervisor *sup)
{
	return sup->spec->trace & SPEC_TRACE_NETWORK && sup->network;
}

static void say_started(struct supervisor *sup, bool is_observed)
{
	unsigned sources = is_observed ? sup->spec->trace : 0;
	struct event ev = {.kind = EVENT_TRACE_STARTED};
	struct slice names[5];
	size_t n = 0;

	if (sources & SPEC_TRACE_PROCESSES)
		names[n++] = slice_of("processes");
	if (sources & SPEC_TRACE_FILES)
		names[n++] = slice_of("files");
	if (sources & SPEC_TRACE_OUTPUTS)
		names[n++] = slice_of("outputs");
	if (sources & SPEC_TRACE_MOUNTS)
		names[n++] = slice_of("mounts");
	if (sees_network(sup))
		names[n++] = slice_of("network");
	if (n == 0)
		return;
	event_set(&ev, sources, ((struct event_list){.items = names, .n = n}));
	recorder_emit_now(sup->recorder, &ev);
}

static int open_observer(struct supervisor *sup, struct observer **ret_observer, struct err *err)
{
	scoped_mem char *pins = mem_printf("%s/bpf", sup->run_dir);
	struct mount_place *places = new0_n(struct mount_place, sup->spec->n_mounts + 1);
	struct observer_config config = {
		.id = sup->id,
		.pin_dir = pins,
		.sources = sources_of(sup->spec),
		.buffer_bytes = (size_t)sup->spec->buffer_bytes,
		.root_fd = sandbox_root_fd(sup->sandbox),
		.init_pid = sandbox_init_pid(sup->sandbox),
		.start_ns = sandbox_start_ns(sup->sandbox),
		.sink = recorder_sink(sup->recorder),
		.hold = sup->spec->on_loss == SPEC_ON_LOSS_FREEZE ? hold : NULL,
		.hold_ctx = sup,
		.mounts = places,
		.n_mounts = sup->spec->n_mounts,
		.witness = take(&sup->witness),
	};
	int r;

	for (size_t i = 0; i < sup->spec->n_mounts; i++)
		places[i] = (struct mount_place){.guest = sup->spec->mounts[i].guest,
			.is_internal = sup->spec->mounts[i].internal};
	r = observer_open(&config, ret_observer, err);
	free(places);
	if (r < 0)
		return r;
	return observer_add_cgroup(
		*ret_observer, sandbox_init_cgroup_id(sup->sandbox), "", true, err);
}

void tracing_start(struct supervisor *sup)
{
	scoped(observer) struct observer *observer = NULL;
	struct tracing *tracing;
	struct err err;

	if (sources_of(sup->spec) != 0 && open_observer(sup, &observer, &err) < 0)
		say_blind(sup, "tracing is off", err.msg, NULL);
	say_started(sup, observer != NULL);
	if (!observer)
		return;
	if (sup->witness_fault)
		say_blind(sup,
			"mounts are not watched by a witness, closes and byte counts are not told",
			sup->witness_fault, "mounts");
	tracing = new0(struct tracing);
	tracing->observer = take(&observer);
	sup->tracing = tracing;
	tracing->timer = loop_timer_new(sup->loop, drain, sup);
	tracing->io =
		loop_io_new(sup->loop, observer_fd(tracing->observer), LOOP_READ, on_wake, sup);
	loop_timer_set(tracing->timer, 0);
}

void tracing_stop(struct supervisor *sup)
{
	struct tracing *tracing = sup->tracing;

	if (!tracing)
		return;
	while (observer_drain(tracing->observer, 0) > 0)
		;
	observer_end(tracing->observer);
	loop_io_free(tracing->io);
	loop_timer_free(tracing->timer);
	observer_free(tracing->observer);
	free(tracing);
	sup->tracing = NULL;
}

int tracing_add_cgroup(
	struct supervisor *sup, uint64_t cgroup_id, const char *exec_id, struct err *err)
{
	if (!sup->tracing)
		return 0;
	/* Poll from here: the exec's first events are worth more than a sleeping ring. */
	sup->tracing->found_ns = clock_mono_ns();
	loop_timer_set(sup->tracing->timer, OBSERVER_POLL_MS);
	return observer_add_cgroup(sup->tracing->observer, cgroup_id, exec_id, false, err);
}

void tracing_remove_cgroup(struct supervisor *sup, uint64_t cgroup_id)
{
	if (sup->tracing)
		observer_remove_cgroup(sup->tracing->observer, cgroup_id);
}

bool tracing_settle(struct supervisor *sup)
{
	if (!sup->tracing)
		return true;
	return observer_drain_exit(sup->tracing->observer, SETTLE_MS) == 0;
}
