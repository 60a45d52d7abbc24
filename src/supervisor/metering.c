/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/metering.h"

#include "supervisor/network.h"
#include "supervisor/running.h"
#include "util/clock.h"
#include "util/mem.h"

#define INTERVAL_MIN_MS 1000
#define INTERVAL_MAX_MS 60000
#define EVEN_SAMPLES    300   /* at the shortest interval */
#define QUIET_MAX_MS    30000 /* of the interval while nothing is used */
#define AFRESH_MS       100   /* an exec that ends so soon behind another shares the next sample */
#define QUIET_PART      1000  /* less of one CPU than this part is nothing */
#define PROCESSES_MAX   512   /* looked into for one sample: some 8 us each */

struct sample {
	int64_t at_ns;
	struct gauge_group group;
	struct gauge_processes processes; /* with those that ended */
	int64_t disk_bytes;
	bool is_full;
};

/* Bytes through the network one way. Either sum may lack something: of flows that are open, or of those whose end the
 * gateway has not told yet; so the larger one holds. */
struct passed {
	int64_t ended;           /* by flows that ended */
	int64_t before, counted; /* as gateways say: all before this one, and this one */
};

struct metering {
	struct loop_timer *timer;
	int64_t due_ns;        /* 0: no sample to come */
	int64_t busy_since_ns; /* 0: idle */
	unsigned n_quiet;
	bool is_dirty;    /* something ran since the last sample */
	bool has_ended;   /* an exec did */
	int64_t ended_ns; /* when the last sample for an exec's end was taken; 0: never */
	struct sample last;
	int64_t ended_read_bytes, ended_write_bytes; /* by execs that ended */
	struct passed out, in;
	int64_t times_full;
};

int64_t metering_interval_ms(int64_t ran_ns, unsigned n_quiet)
{
	int64_t ms = ran_ns / CLOCK_NS_PER_MS / EVEN_SAMPLES, quiet_ms = INTERVAL_MIN_MS;

	for (unsigned i = 0; i < n_quiet && quiet_ms < QUIET_MAX_MS; i++)
		quiet_ms *= 2;
	quiet_ms = quiet_ms < QUIET_MAX_MS ? quiet_ms : QUIET_MAX_MS;
	if (ms < quiet_ms)
		return quiet_ms;
	return ms < INTERVAL_MAX_MS ? ms : INTERVAL_MAX_MS;
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) || sum < 0 ? INT64_MAX : sum;
}

static int64_t sum_of(const struct passed *passed)
{
	int64_t counted = add(passed->before, passed->counted);

	return passed->ended > counted ? passed->ended : counted;
}

static void emit(struct supervisor *sup, const struct sample *sample)
{
	const struct gauge_group *group = &sample->group;
	const struct gauge_processes *processes = &sample->processes;
	struct event ev = {.kind = EVENT_SANDBOX_STATS};

	METERING_SET(&ev, cpu_ms, metering_cpu_ms(group));
	METERING_SET(&ev, memory_bytes, group->memory_bytes);
	METERING_SET(&ev, memory_peak_bytes, group->memory_peak_bytes);
	METERING_SET(&ev, rss_bytes, processes->rss_bytes);
	METERING_SET(&ev, processes, processes->n);
	METERING_SET(&ev, threads_peak, group->threads_peak);
	METERING_SET(&ev, disk_read_bytes, processes->disk_read_bytes);
	METERING_SET(&ev, disk_write_bytes, processes->disk_write_bytes);
	METERING_SET(&ev, disk_bytes, sample->disk_bytes);
	if (sup->network) {
		event_set(&ev, bytes_out, sum_of(&sup->metering->out));
		event_set(&ev, bytes_in, sum_of(&sup->metering->in));
	}
	recorder_emit_now(sup->recorder, &ev);
}

/* What ended is added, and what a process that nobody waited for took with it is not taken back. */
static void carry(int64_t *now, int64_t ended, int64_t before)
{
	if (*now == GAUGE_UNKNOWN || ended == GAUGE_UNKNOWN) {
		*now = GAUGE_UNKNOWN;
		return;
	}
	*now += ended;
	if (*now < before)
		*now = before;
}

static void measure(const struct supervisor *sup, struct sample *sample)
{
	const struct metering *metering = sup->metering;
	const struct gauge_processes *before = &metering->last.processes;
	unsigned left = PROCESSES_MAX;

	*sample = (struct sample){.at_ns = clock_mono_ns()};
	if (!gauge_counts_disk())
		sample->processes.disk_read_bytes = sample->processes.disk_write_bytes =
			GAUGE_UNKNOWN;
	sample->disk_bytes = sandbox_disk_held(sup->sandbox, &sample->is_full);
	sandbox_read_usage(sup->sandbox, &sample->group);
	for (size_t i = 0; i < sup->n_execs; i++)
		running_add_processes(sup->execs[i], &left, &sample->processes);
	carry(&sample->processes.disk_read_bytes, metering->ended_read_bytes,
		before->disk_read_bytes);
	carry(&sample->processes.disk_write_bytes, metering->ended_write_bytes,
		before->disk_write_bytes);
}

static bool is_quiet(const struct sample *last, const struct sample *now)
{
	int64_t span_us = (now->at_ns - last->at_ns) / 1000;

	return last->at_ns && now->processes.n == last->processes.n &&
	       now->processes.rss_bytes == last->processes.rss_bytes &&
	       (now->group.cpu_us - last->group.cpu_us) * QUIET_PART < span_us;
}

static void arm(struct metering *metering, int64_t ms)
{
	metering->due_ns = clock_mono_ns() + ms * CLOCK_NS_PER_MS;
	loop_timer_set(metering->timer, ms);
}

static void disarm(struct metering *metering)
{
	metering->due_ns = 0;
	loop_timer_stop(metering->timer);
}

/* Takes one sample, and plans the next. Where nothing was used and nothing ended, none is kept. */
static void take_sample(struct supervisor *sup)
{
	struct metering *metering = sup->metering;
	struct sample sample;

	measure(sup, &sample);
	metering->times_full += sample.is_full;
	metering->n_quiet = is_quiet(&metering->last, &sample) ? metering->n_quiet + 1 : 0;
	if (metering->has_ended || metering->n_quiet == 0) {
		emit(sup, &sample);
		metering->last = sample;
	}
	if (metering->has_ended)
		metering->ended_ns = sample.at_ns;
	metering->has_ended = false;
	metering->is_dirty = sample.processes.n > 0;
	if (sample.processes.n > 0) {
		arm(metering, metering_interval_ms(
				      sample.at_ns - metering->busy_since_ns, metering->n_quiet));
	} else {
		metering->busy_since_ns = 0;
		disarm(metering);
	}
}

static void on_time(void *ctx)
{
	struct supervisor *sup = ctx;

	take_sample(sup);
	network_ask_count(sup); /* for the next */
	recorder_flush(sup->recorder, false);
}

struct metering *metering_new(struct supervisor *sup)
{
	struct metering *metering = new0(struct metering);

	metering->timer = loop_timer_new(sup->loop, on_time, sup);
	return metering;
}

void metering_free(struct metering *metering)
{
	if (!metering)
		return;
	loop_timer_free(metering->timer);
	free(metering);
}

void metering_start(struct supervisor *sup)
{
	struct metering *metering = sup->metering;
	int64_t now_ns = clock_mono_ns();

	metering->is_dirty = true;
	metering->n_quiet = 0;
	if (!metering->busy_since_ns)
		metering->busy_since_ns = now_ns;
	if (!metering->due_ns || metering->due_ns > now_ns + INTERVAL_MIN_MS * CLOCK_NS_PER_MS)
		arm(metering, INTERVAL_MIN_MS);
}

void metering_pause(struct supervisor *sup)
{
	disarm(sup->metering);
}

void metering_end_exec(struct supervisor *sup, const struct sandbox_exit *exit)
{
	struct metering *metering = sup->metering;
	int64_t afresh_ns = metering->ended_ns + AFRESH_MS * CLOCK_NS_PER_MS;

	metering->is_dirty = metering->has_ended = true;
	if (exit->disk_read_bytes != GAUGE_UNKNOWN) {
		metering->ended_read_bytes += exit->disk_read_bytes;
		metering->ended_write_bytes += exit->disk_write_bytes;
	}
	if (!metering->ended_ns || clock_mono_ns() > afresh_ns)
		take_sample(sup);
	else if (!metering->due_ns || metering->due_ns > afresh_ns)
		arm(metering, AFRESH_MS);
}

void metering_finish(struct supervisor *sup)
{
	struct metering *metering = sup->metering;

	metering->has_ended = metering->is_dirty;
	if (metering->is_dirty)
		take_sample(sup);
	disarm(metering);
}

int64_t metering_times_full(const struct supervisor *sup)
{
	return sup->metering->times_full;
}

/* The gateway reads what is foreign: less than nothing is not believed. */
void metering_add_network(struct supervisor *sup, int64_t bytes_out, int64_t bytes_in)
{
	struct metering *metering = sup->metering;

	if (bytes_out > 0)
		metering->out.ended = add(metering->out.ended, bytes_out);
	if (bytes_in > 0)
		metering->in.ended = add(metering->in.ended, bytes_in);
}

void metering_count_network(struct supervisor *sup, bool is_out, uint64_t bytes)
{
	struct passed *passed = is_out ? &sup->metering->out : &sup->metering->in;

	if (bytes <= INT64_MAX && (int64_t)bytes > passed->counted)
		passed->counted = (int64_t)bytes;
}

void metering_end_gateway(struct supervisor *sup)
{
	struct passed *both[] = {&sup->metering->out, &sup->metering->in};

	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		both[i]->before = sum_of(both[i]);
		both[i]->counted = 0;
	}
}
