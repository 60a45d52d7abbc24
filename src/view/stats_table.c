/* SPDX-License-Identifier: Apache-2.0 */
#include "view/stats_table.h"

#include <stdlib.h>

#include "util/clock.h"
#include "util/mem.h"
#include "view/saturate.h"
#include "view/stats_internal.h"

#define SPAN_MIN_NS \
	(100 * CLOCK_NS_PER_MS) /* less says nothing: a sandbox's making takes CPU time, too */
#define PERMILLE_MAX 10000000   /* of ten thousand CPUs: beyond is nothing that Cloche wrote */

static const enum event_field fields[STATS_N_FIGURES] = {
	[STATS_CPU_MS] = EVENT_F_cpu_ms,
	[STATS_MEMORY] = EVENT_F_memory_bytes,
	[STATS_MEMORY_PEAK] = EVENT_F_memory_peak_bytes,
	[STATS_RSS] = EVENT_F_rss_bytes,
	[STATS_PROCESSES] = EVENT_F_processes,
	[STATS_THREADS_PEAK] = EVENT_F_threads_peak,
	[STATS_DISK_READ] = EVENT_F_disk_read_bytes,
	[STATS_DISK_WRITE] = EVENT_F_disk_write_bytes,
	[STATS_DISK] = EVENT_F_disk_bytes,
	[STATS_OUT] = EVENT_F_bytes_out,
	[STATS_IN] = EVENT_F_bytes_in,
};

/* Figures that views add up over a sandbox that was resumed. */
static const struct {
	enum stats_figure figure;
	enum stats_sum sum;
} summed[STATS_N_SUMS] = {{STATS_CPU_MS, STATS_SUM_CPU_MS}, {STATS_DISK_READ, STATS_SUM_DISK_READ},
	{STATS_DISK_WRITE, STATS_SUM_DISK_WRITE}, {STATS_OUT, STATS_SUM_OUT},
	{STATS_IN, STATS_SUM_IN}};

struct stats_table {
	struct view_filter filter;
	bool is_asked;       /* the exec of the filter runs */
	bool is_idle;        /* nothing ran at the last sample, and nothing was started since */
	bool has_heading;    /* is printed */
	int64_t from_ns;     /* since when the next sample's CPU time is used */
	int64_t from_cpu_ms; /* and what had been used by then */
	struct stats_totals totals;
	struct stats_row *rows;
	size_t n_rows, cap_rows;
};

struct stats_table *stats_table_new(const struct view_filter *filter)
{
	struct stats_table *table = new0(struct stats_table);

	table->filter = *filter;
	table->is_idle = true;
	stats_totals_init(&table->totals);
	return table;
}

void stats_table_free(struct stats_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table);
}

static int64_t figure_of(const struct event *ev, enum event_field field)
{
	int64_t v = *(const event_int *)(const void *)((const char *)ev +
						       event_field_table[field].offset);

	return event_has_field(ev, field) && v >= 0 ? v : STATS_UNKNOWN;
}

static int64_t permille_of(const struct stats_table *table, const struct stats_row *row)
{
	int64_t used_ms = row->figures[STATS_CPU_MS] - table->from_cpu_ms, span_ns, permille;

	if (row->figures[STATS_CPU_MS] == STATS_UNKNOWN || used_ms < 0 ||
		__builtin_sub_overflow(row->guest_ns, table->from_ns, &span_ns) ||
		span_ns < SPAN_MIN_NS ||
		__builtin_mul_overflow(used_ms, 1000 * CLOCK_NS_PER_MS, &permille))
		return STATS_UNKNOWN;
	permille /= span_ns;
	return permille <= PERMILLE_MAX ? permille : STATS_UNKNOWN;
}

static void read_row(struct stats_table *table, const struct event *ev, struct stats_row *row)
{
	*row = (struct stats_row){.seq = ev->seq, .wall_ms = ev->wall_ms, .guest_ns = ev->guest_ns};
	for (int i = 0; i < STATS_N_FIGURES; i++)
		row->figures[i] = figure_of(ev, fields[i]);
	for (int i = 0; i < STATS_N_SUMS; i++)
		if (row->figures[summed[i].figure] != STATS_UNKNOWN)
			row->figures[summed[i].figure] =
				saturate_add(row->figures[summed[i].figure],
					table->totals.before[summed[i].sum]);
	row->cpu_permille = permille_of(table, row);
	table->from_ns = row->guest_ns;
	if (row->figures[STATS_CPU_MS] != STATS_UNKNOWN)
		table->from_cpu_ms = row->figures[STATS_CPU_MS];
	table->is_idle = row->figures[STATS_PROCESSES] == 0;
}

static void take_start(struct stats_table *table, const struct event *ev)
{
	if (table->is_idle)
		table->from_ns = ev->guest_ns;
	table->is_idle = false;
	if (slice_eq(ev->exec, table->filter.exec))
		table->is_asked = true;
}

/* Whether the event is a sample that is asked for. */
static bool take_event(struct stats_table *table, const struct event *ev, struct stats_row *row)
{
	struct view_filter when = table->filter;

	stats_totals_add(&table->totals, ev);
	if (ev->kind == EVENT_EXEC_START)
		take_start(table, ev);
	else if (ev->kind == EVENT_SANDBOX_RESUMED)
		table->is_idle = true;
	else if (ev->kind == EVENT_EXEC_END && slice_eq(ev->exec, table->filter.exec))
		table->is_asked = false;
	if (ev->kind != EVENT_SANDBOX_STATS)
		return false;
	read_row(table, ev, row);
	when.exec = (struct slice){0}; /* a sample is the whole sandbox's */
	return view_filter_takes(&when, ev) && (table->is_asked || table->filter.exec.len == 0);
}

void stats_table_add(struct stats_table *table, const struct event *ev)
{
	struct stats_row row;

	if (!take_event(table, ev, &row))
		return;
	if (table->n_rows == table->cap_rows) {
		table->cap_rows = table->cap_rows ? table->cap_rows * 2 : 64;
		table->rows = mem_grow(table->rows, table->cap_rows, sizeof(row));
	}
	table->rows[table->n_rows++] = row;
}

/* sandbox: empty where it need not be named. */
static void write_row(struct jsonw *j, const struct stats_row *row, struct slice sandbox)
{
	char at[CLOCK_TEXT_LEN];

	clock_format(row->wall_ms, at);
	jsonw_object(j);
	if (sandbox.len)
		jsonw_kslice(j, "sandbox", sandbox);
	jsonw_ktext(j, "at", at);
	jsonw_kint(j, "guest_ns", row->guest_ns);
	jsonw_kint(j, "seq", (int64_t)row->seq);
	jsonw_key(j, "cpu_percent");
	if (row->cpu_permille == STATS_UNKNOWN)
		jsonw_null(j);
	else
		jsonw_real(j, (double)row->cpu_permille / 10);
	for (int i = 0; i < STATS_N_FIGURES; i++) {
		const char *key = event_field_table[fields[i]].name;

		if (row->figures[i] == STATS_UNKNOWN)
			jsonw_knull(j, key);
		else
			jsonw_kint(j, key, row->figures[i]);
	}
	jsonw_object_end(j);
}

void stats_table_json(struct stats_table *table, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	for (size_t i = 0; i < table->n_rows; i++)
		write_row(&j, &table->rows[i], (struct slice){0});
	jsonw_array_end(&j);
}

void stats_table_text(struct stats_table *table, const struct view_style *style, struct str *out)
{
	if (table->totals.samples == 0) {
		str_puts(out, "nothing was measured\n");
		return;
	}
	if (table->n_rows > 0)
		stats_text_add_heading(out, style);
	for (size_t i = 0; i < table->n_rows; i++)
		stats_text_add_row(out, &table->rows[i]);
	str_puts(out, "in all: ");
	stats_totals_text(&table->totals, out);
	str_putc(out, '\n');
}

bool stats_table_next_json(
	struct stats_table *table, const struct event *ev, bool is_one_of, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	struct stats_row row;
	bool is_row = take_event(table, ev, &row);

	if (is_row)
		write_row(&j, &row, is_one_of ? ev->sandbox : (struct slice){0});
	return is_row;
}

bool stats_table_next_text(struct stats_table *table, const struct event *ev, bool is_one_of,
	const struct view_style *style, struct str *out)
{
	struct stats_row row;
	bool is_row = take_event(table, ev, &row);

	if (is_row && !is_one_of && !table->has_heading)
		stats_text_add_heading(out, style);
	if (is_row)
		stats_text_add_row(out, &row);
	table->has_heading = table->has_heading || is_row;
	return is_row;
}
