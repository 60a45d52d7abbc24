/* SPDX-License-Identifier: Apache-2.0 */
/* What was used over time, folded from events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/clock.h"
#include "view/stats_table.h"
#include "view/timeline.h"

#define EXEC  "ex_a"
#define START 1795961402000LL

static struct event at_ms(enum event_kind kind, int64_t ms)
{
	return (struct event){.kind = kind,
		.seq = (uint64_t)ms + 1,
		.guest_ns = ms * CLOCK_NS_PER_MS,
		.wall_ms = START + ms,
		.sandbox = slice_of("sb_x")};
}

static struct event exec_at(enum event_kind kind, int64_t ms, const char *exec)
{
	struct event ev = at_ms(kind, ms);

	ev.exec = slice_of(exec);
	return ev;
}

static struct event sample(int64_t ms, int64_t cpu_ms, int64_t processes)
{
	struct event ev = at_ms(EVENT_SANDBOX_STATS, ms);

	event_set(&ev, cpu_ms, cpu_ms);
	event_set(&ev, processes, processes);
	return ev;
}

static void add(struct stats_table *table, struct event ev)
{
	stats_table_add(table, &ev);
}

/* Two execs with an idle hour between them. */
static void feed(struct stats_table *table)
{
	struct event first = sample(2000, 500, 2), second = sample(3000, 2300, 0);

	event_set(&first, rss_bytes, 3 << 20);
	event_set(&first, disk_write_bytes, 4096);
	event_set(&second, disk_write_bytes, 8192);
	add(table, at_ms(EVENT_SANDBOX_CREATED, 0));
	add(table, exec_at(EVENT_EXEC_START, 1000, EXEC));
	stats_table_add(table, &first);
	stats_table_add(table, &second);
	add(table, exec_at(EVENT_EXEC_END, 3000, EXEC));
	add(table, exec_at(EVENT_EXEC_START, 3603000, "ex_b"));
	add(table, sample(3604000, 2400, 1));
	add(table, exec_at(EVENT_EXEC_END, 3604000, "ex_b"));
}

static void check_json(const struct view_filter *filter, const char *want)
{
	scoped(stats_table) struct stats_table *table = stats_table_new(filter);
	scoped_str struct str out = {0};

	feed(table);
	stats_table_json(table, &out);
	assert_string_equal(out.p, want);
}

#define ROW(at, ns, seq, percent, cpu, rss, n, written) \
	"{\"at\":\"2026-11-29T" at "\",\"guest_ns\":" ns ",\"seq\":" seq \
	",\"cpu_percent\":" percent ",\"cpu_ms\":" cpu \
	",\"memory_bytes\":null,\"memory_peak_bytes\":null,\"rss_bytes\":" rss ",\"processes\":" n \
	",\"threads_peak\":null,\"disk_read_bytes\":null," \
	"\"disk_write_bytes\":" written \
	",\"disk_bytes\":null,\"bytes_out\":null,\"bytes_in\":null}"
#define FIRST  ROW("14:10:04.000Z", "2000000000", "2001", "50.000", "500", "3145728", "2", "4096")
#define SECOND ROW("14:10:05.000Z", "3000000000", "3001", "180.000", "2300", "null", "0", "8192")
#define THIRD \
	ROW("15:10:06.000Z", "3604000000000", "3604001", "10.000", "2400", "null", "1", "null")

/* The time in which nothing ran is nobody's; what is not counted is null. */
static void test_rows(void **state)
{
	check_json(&(struct view_filter){0}, "[" FIRST "," SECOND "," THIRD "]");
}

static void test_filters(void **state)
{
	struct view_filter filter = {.exec = slice_of(EXEC)};

	check_json(&filter, "[" FIRST "," SECOND "]");
	filter = (struct view_filter){.exec = slice_of("ex_b")};
	check_json(&filter, "[" THIRD "]");
	filter = (struct view_filter){.exec = slice_of("ex_none")};
	check_json(&filter, "[]");
	filter = (struct view_filter){.since = {VIEW_BOUND_GUEST, 2500 * CLOCK_NS_PER_MS},
		.until = {VIEW_BOUND_GUEST, 9000 * CLOCK_NS_PER_MS}};
	check_json(&filter, "[" SECOND "]");
}

static void test_text(void **state)
{
	scoped(stats_table) struct stats_table *table = stats_table_new(&(struct view_filter){0});
	scoped_str struct str out = {0};

	stats_table_text(table, &(struct view_style){0}, &out);
	assert_string_equal(out.p, "nothing was measured\n");
	str_reset(&out);
	feed(table);
	stats_table_text(table, &(struct view_style){0}, &out);
	assert_string_equal(out.p,
		"TIME        CPU%      CPU    MEMORY  RESIDENT PROCESSES      READ   WRITTEN       "
		"OUT        IN\n"
		"14:10:04    50.0    500ms         -    3.0 MB         2         -    4.0 KB       "
		"  -         -\n"
		"14:10:05   180.0     2.3s         -         -         0         -    8.0 KB       "
		"  -         -\n"
		"15:10:06    10.0     2.4s         -         -         1         -         -       "
		"  -         -\n"
		"in all: 2.4s CPU, memory 3.0 MB seen, 2 processes seen, disk 8.0 KB written\n");
}

/* Rows as they come: one heading; of several sandboxes none, and each object names its own. */
static void test_stream(void **state)
{
	scoped(stats_table) struct stats_table *table = stats_table_new(&(struct view_filter){0});
	scoped(stats_table) struct stats_table *many = stats_table_new(&(struct view_filter){0});
	const struct view_style style = {0};
	struct event ev = sample(2000, 500, 2), start = exec_at(EVENT_EXEC_START, 1000, EXEC);
	scoped_str struct str out = {0};

	assert_false(stats_table_next_text(table, &start, false, &style, &out));
	assert_int_equal(out.len, 0);
	assert_true(stats_table_next_text(table, &ev, false, &style, &out));
	assert_memory_equal(out.p, "TIME", 4);
	str_reset(&out);
	assert_true(stats_table_next_text(table, &ev, false, &style, &out));
	assert_memory_equal(out.p, "14:10:04", 8);
	str_reset(&out);
	assert_true(stats_table_next_text(many, &ev, true, &style, &out));
	assert_memory_equal(out.p, "14:10:04", 8);
	str_reset(&out);
	assert_true(stats_table_next_json(table, &ev, true, &out));
	assert_memory_equal(out.p, "{\"sandbox\":\"sb_x\",\"at\"", 22);
}

/* A record may say anything. */
static void test_forged(void **state)
{
	scoped(stats_table) struct stats_table *table = stats_table_new(&(struct view_filter){0});
	struct event ev = sample(INT64_MAX / CLOCK_NS_PER_MS, INT64_MAX, -5);
	struct event back = sample(-1000, INT64_MAX, INT64_MAX);
	scoped_str struct str out = {0};

	ev.wall_ms = INT64_MAX;
	event_set(&ev, rss_bytes, INT64_MIN);
	stats_table_add(table, &ev);
	stats_table_add(table, &back);
	stats_table_text(table, &(struct view_style){0}, &out);
	assert_null(strstr(out.p, "-5"));
	stats_table_json(table, &out);
	assert_non_null(strstr(out.p, "\"processes\":null"));
}

static void test_totals(void **state)
{
	struct stats_totals totals;
	struct event ev = sample(2000, 500, 2), end = exec_at(EVENT_EXEC_END, 2000, EXEC);
	scoped_str struct str out = {0};
	struct jsonw j = jsonw_to(&out);

	stats_totals_init(&totals);
	event_set(&ev, memory_bytes, 100 << 20);
	event_set(&ev, memory_peak_bytes, 120 << 20);
	event_set(&ev, threads_peak, 1);
	event_set(&ev, bytes_in, 1 << 20);
	event_set(&ev, bytes_out, 100);
	event_set(&ev, disk_bytes, 4 << 20);
	event_set(&end, rss_max_bytes, 60 << 20);
	event_set(&end, threads_peak, 14);
	stats_totals_add(&totals, &ev);
	stats_totals_add(&totals, &end);
	stats_totals_text(&totals, &out);
	assert_string_equal(out.p,
		"500ms CPU, memory 120 MB at most, 14 threads at most, 4.0 MB held at most, "
		"network 1.0 MB in, 100 bytes out");
	str_reset(&out);
	jsonw_object(&j);
	stats_totals_json(&totals, &j);
	jsonw_object_end(&j);
	assert_string_equal(out.p,
		"{\"samples\":1,\"cpu_ms\":500,\"memory_peak_bytes\":125829120,\"rss_peak_bytes\":"
		"null,\"rss_max_bytes\":62914560,\"processes_seen\":2,\"threads_peak\":14,"
		"\"disk_read_bytes\":null,\"disk_write_bytes\":null,\"disk_peak_bytes\":4194304,"
		"\"bytes_out\":100,\"bytes_in\":1048576}");
}

/* Each life of a sandbox counts from nothing. */
static void test_resumed(void **state)
{
	scoped(stats_table) struct stats_table *table = stats_table_new(&(struct view_filter){0});
	struct event first = sample(2000, 500, 0), second = sample(9000, 300, 0);
	scoped_str struct str out = {0};

	event_set(&first, disk_write_bytes, 4096);
	event_set(&second, disk_write_bytes, 1024);
	add(table, first);
	add(table, at_ms(EVENT_SANDBOX_RESUMED, 8000));
	add(table, exec_at(EVENT_EXEC_START, 8000, EXEC));
	add(table, second);
	stats_table_json(table, &out);
	assert_non_null(strstr(out.p, "\"seq\":9001,\"cpu_percent\":30.000,\"cpu_ms\":800,"));
	assert_non_null(strstr(out.p, "\"disk_write_bytes\":5120,"));
	str_reset(&out);
	stats_table_text(table, &(struct view_style){0}, &out);
	assert_non_null(strstr(out.p, "in all: 800ms CPU, disk 5.0 KB written\n"));
}

/* Samples are no steps of a sandbox's life, among which they would be most of the rows. */
static void test_not_in_timeline(void **state)
{
	static const struct view_filter all = {0};
	scoped(timeline) struct timeline *timeline = timeline_new(&all);
	scoped_str struct str out = {0};
	struct event created = at_ms(EVENT_SANDBOX_CREATED, 0), one = sample(2000, 500, 2);

	timeline_add(timeline, &created);
	timeline_add(timeline, &one);
	timeline_json(timeline, &out);
	assert_string_equal(out.p, "[{\"what\":\"sandbox\",\"at\":\"2026-11-29T14:10:02.000Z\","
				   "\"guest_ns\":0,\"seq\":1,"
				   "\"event\":\"sandbox.created\",\"count\":1}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_resumed),
		cmocka_unit_test(test_not_in_timeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
