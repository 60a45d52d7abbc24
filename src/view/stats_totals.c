/* SPDX-License-Identifier: Apache-2.0 */
#include "view/stats_totals.h"

#include "util/clock.h"
#include "view/saturate.h"
#include "view/view_text.h"

static const enum event_field sum_fields[STATS_N_SUMS] = {
	[STATS_SUM_CPU_MS] = EVENT_F_cpu_ms,
	[STATS_SUM_DISK_READ] = EVENT_F_disk_read_bytes,
	[STATS_SUM_DISK_WRITE] = EVENT_F_disk_write_bytes,
	[STATS_SUM_OUT] = EVENT_F_bytes_out,
	[STATS_SUM_IN] = EVENT_F_bytes_in,
};

void stats_totals_init(struct stats_totals *totals)
{
	*totals = (struct stats_totals){.memory_peak_bytes = STATS_UNKNOWN,
		.rss_peak_bytes = STATS_UNKNOWN,
		.rss_max_bytes = STATS_UNKNOWN,
		.processes_seen = STATS_UNKNOWN,
		.threads_peak = STATS_UNKNOWN,
		.disk_peak_bytes = STATS_UNKNOWN};
	for (int i = 0; i < STATS_N_SUMS; i++)
		totals->sums[i] = STATS_UNKNOWN;
}

int64_t stats_totals_sum(const struct stats_totals *totals, enum stats_sum sum)
{
	if (totals->sums[sum] == STATS_UNKNOWN)
		return totals->before[sum] ? totals->before[sum] : STATS_UNKNOWN;
	return saturate_add(totals->before[sum], totals->sums[sum]);
}

static void begin_anew(struct stats_totals *totals)
{
	for (int i = 0; i < STATS_N_SUMS; i++) {
		int64_t sum = stats_totals_sum(totals, (enum stats_sum)i);

		totals->before[i] = sum == STATS_UNKNOWN ? 0 : sum;
		totals->sums[i] = STATS_UNKNOWN;
	}
}

/* Sums only grow, so the largest is the last. Below 0 is nothing that Cloche wrote. */
static void raise(int64_t *most, const struct event *ev, enum event_field field)
{
	int64_t v = *(const event_int *)(const void *)((const char *)ev +
						       event_field_table[field].offset);

	if (event_has_field(ev, field) && v > *most)
		*most = v;
}

static void add_exec(struct stats_totals *totals, const struct event *ev)
{
	raise(&totals->memory_peak_bytes, ev, EVENT_F_memory_peak_bytes);
	raise(&totals->rss_max_bytes, ev, EVENT_F_rss_max_bytes);
	raise(&totals->threads_peak, ev, EVENT_F_threads_peak);
}

void stats_totals_add(struct stats_totals *totals, const struct event *ev)
{
	if (ev->kind == EVENT_EXEC_END)
		add_exec(totals, ev);
	else if (ev->kind == EVENT_SANDBOX_RESUMED)
		begin_anew(totals);
	if (ev->kind != EVENT_SANDBOX_STATS)
		return;
	totals->samples++;
	for (int i = 0; i < STATS_N_SUMS; i++)
		raise(&totals->sums[i], ev, sum_fields[i]);
	raise(&totals->memory_peak_bytes, ev, EVENT_F_memory_peak_bytes);
	raise(&totals->rss_peak_bytes, ev, EVENT_F_rss_bytes);
	raise(&totals->processes_seen, ev, EVENT_F_processes);
	raise(&totals->threads_peak, ev, EVENT_F_threads_peak);
	raise(&totals->disk_peak_bytes, ev, EVENT_F_disk_bytes);
}

static void write_known(struct jsonw *j, const char *key, int64_t value)
{
	if (value == STATS_UNKNOWN)
		jsonw_knull(j, key);
	else
		jsonw_kint(j, key, value);
}

void stats_totals_json(const struct stats_totals *totals, struct jsonw *j)
{
	jsonw_kint(j, "samples", totals->samples);
	write_known(j, "cpu_ms", stats_totals_sum(totals, STATS_SUM_CPU_MS));
	write_known(j, "memory_peak_bytes", totals->memory_peak_bytes);
	write_known(j, "rss_peak_bytes", totals->rss_peak_bytes);
	write_known(j, "rss_max_bytes", totals->rss_max_bytes);
	write_known(j, "processes_seen", totals->processes_seen);
	write_known(j, "threads_peak", totals->threads_peak);
	write_known(j, "disk_read_bytes", stats_totals_sum(totals, STATS_SUM_DISK_READ));
	write_known(j, "disk_write_bytes", stats_totals_sum(totals, STATS_SUM_DISK_WRITE));
	write_known(j, "disk_peak_bytes", totals->disk_peak_bytes);
	write_known(j, "bytes_out", stats_totals_sum(totals, STATS_SUM_OUT));
	write_known(j, "bytes_in", stats_totals_sum(totals, STATS_SUM_IN));
}

/* "before 12 MB behind" */
static void add_bytes(struct str *out, const char *before, int64_t value, const char *behind)
{
	if (value == STATS_UNKNOWN)
		return;
	str_puts(out, before);
	view_text_add_bytes(out, value);
	str_puts(out, behind);
}

static void add_memory(const struct stats_totals *totals, struct str *out)
{
	int64_t rss = totals->rss_peak_bytes > totals->rss_max_bytes ? totals->rss_peak_bytes
	                                                             : totals->rss_max_bytes;

	if (totals->memory_peak_bytes != STATS_UNKNOWN)
		add_bytes(out, ", memory ", totals->memory_peak_bytes, " at most");
	else if (rss > 0) /* nobody counted all the time */
		add_bytes(out, ", memory ", rss, " seen");
}

static void add_processes(const struct stats_totals *totals, struct str *out)
{
	bool is_peak = totals->threads_peak != STATS_UNKNOWN;
	int64_t n = is_peak ? totals->threads_peak : totals->processes_seen;

	if (n <= 0)
		return;
	str_puts(out, ", ");
	view_text_add_count(out, n);
	if (is_peak)
		str_puts(out, n == 1 ? " thread at most" : " threads at most");
	else
		str_puts(out, n == 1 ? " process seen" : " processes seen");
}

void stats_totals_text(const struct stats_totals *totals, struct str *out)
{
	int64_t sums[STATS_N_SUMS];

	for (int i = 0; i < STATS_N_SUMS; i++)
		sums[i] = stats_totals_sum(totals, (enum stats_sum)i);
	if (sums[STATS_SUM_CPU_MS] == STATS_UNKNOWN)
		str_puts(out, "CPU not counted");
	else
		clock_add_duration(out, sums[STATS_SUM_CPU_MS]);
	if (sums[STATS_SUM_CPU_MS] != STATS_UNKNOWN)
		str_puts(out, " CPU");
	add_memory(totals, out);
	add_processes(totals, out);
	add_bytes(out, ", disk ", sums[STATS_SUM_DISK_WRITE], " written");
	if (sums[STATS_SUM_DISK_READ] > 0)
		add_bytes(out, ", ", sums[STATS_SUM_DISK_READ], " read");
	add_bytes(out, ", ", totals->disk_peak_bytes, " held at most");
	if (sums[STATS_SUM_IN] > 0 || sums[STATS_SUM_OUT] > 0) {
		add_bytes(out, ", network ", sums[STATS_SUM_IN], " in");
		add_bytes(out, ", ", sums[STATS_SUM_OUT], " out");
	}
}
