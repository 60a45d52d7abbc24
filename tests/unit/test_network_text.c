/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche net` for people: what was refused first, no line wider than the terminal, names that were only asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "event/event_json.h"
#include "util/mem.h"
#include "view/network_table.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define A80    "\"host\":\"a.test\",\"address\":\"203.0.113.1\",\"port\":80"
#define P443   "\"host\":\"p.test\",\"address\":\"203.0.113.3\",\"port\":443"
#define M443   "\"host\":\"m.test\",\"address\":\"203.0.113.4\",\"port\":443"
#define LONG \
	"\"host\":\"a-name-that-is-much-too-long-for-one-line.of.packages.example.test\"," \
	"\"address\":\"203.0.113.2\",\"port\":443"

static const char *const events[] = {
	"\"net.dns\",\"name\":\"a.test\",\"type\":\"A\"",
	"\"net.connect\",\"flow\":1,\"protocol\":\"tcp\"," A80,
	"\"net.http\",\"flow\":1,\"method\":\"POST\",\"url\":\"http://a.test/form\",\"status\":200,"
	"\"body_bytes\":1234567," A80,
	"\"net.flow\",\"flow\":1,\"protocol\":\"tcp\",\"bytes_out\":1234999,\"bytes_in\":300," A80,
	"\"net.refused\",\"flow\":2,\"protocol\":\"tcp\",\"address\":\"169.254.169.254\",\"port\":"
	"80,"
	"\"rule\":\"default: an address of metadata services\",\"stage\":\"connect\"",
	"\"net.connect\",\"flow\":2,\"protocol\":\"tcp\",\"address\":\"169.254.169.254\",\"port\":"
	"80,"
	"\"result\":\"ECONNREFUSED\"",
	"\"net.connect\",\"flow\":3,\"protocol\":\"tcp\",\"result\":\"ETIMEDOUT\"," LONG,
	"\"net.connect\",\"flow\":4,\"protocol\":\"tcp\"," P443,
	"\"net.flow\",\"flow\":4,\"protocol\":\"tcp\",\"tls\":\"passthrough\"," P443,
	"\"net.connect\",\"flow\":5,\"protocol\":\"tcp\"," M443,
	"\"net.flow\",\"flow\":5,\"protocol\":\"tcp\",\"tls\":\"unreadable\",\"failed\":true,"
	"\"error\":\"pinned\"," M443,
	"\"net.connect\",\"flow\":6,\"protocol\":\"tcp\"," M443,
	"\"net.flow\",\"flow\":6,\"protocol\":\"tcp\",\"tls\":\"intercepted\"," M443,
	"\"net.dns\",\"name\":\"none.test\",\"type\":\"A\",\"error\":\"NXDOMAIN\"",
	"\"net.dns\",\"name\":\"none.test\",\"type\":\"AAAA\",\"error\":\"NXDOMAIN\"",
	"\"net.dns\",\"name\":\"half.test\",\"type\":\"AAAA\",\"error\":\"SERVFAIL\"",
	"\"net.dns\",\"name\":\"half.test\",\"type\":\"A\"",
	"\"net.dns\",\"name\":\"tricky\\u001b[2J.test\",\"type\":\"A\"",
	"\"net.dns\",\"name\":\"denied.test\",\"type\":\"A\",\"refused\":true,\"reason\":\"deny\"",
};

static void add(struct network_table *table, size_t seq, const char *text)
{
	struct event_line *line = NULL;
	struct err err = {0};
	scoped_mem char *json =
		mem_printf("{\"v\":1,\"sandbox\":\"sb_0000000000000000\",\"seq\":%zu,"
			   "\"guest_ns\":%zu,\"wall_ms\":1,\"kind\":%s}",
			seq, seq, text);

	if (event_json_read(slice_of(json), &line, &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	network_table_add(table, event_json_get(line));
	event_line_free(line);
}

static void check(const struct view_style *style, const char *want)
{
	struct view_filter filter = {0};
	scoped(network_table) struct network_table *table = network_table_new(&filter);
	scoped_str struct str text = {0};

	for (size_t i = 0; i < LEN(events); i++)
		add(table, i + 1, events[i]);
	network_table_text(table, style, &text);
	assert_string_equal(text.p, want);
}

static void test_wide(void **state)
{
	check(&(struct view_style){0},
		"HOST                                          PROTO   REQ       OUT        IN  "
		"RESULT\n"
		"169.254.169.254:80                            tcp       0   0 bytes   0 bytes  "
		"REFUSED (an address of metadata services)\n"
		"denied.test                                   -         0   0 bytes   0 bytes  "
		"REFUSED (deny)\n"
		"a.test:80                                     tcp       1    1.2 MB 300 bytes  "
		"ok\n"
		"   200  POST http://a.test/form  1.2 MB sent\n"
		"…g-for-one-line.of.packages.example.test:443  tcp       0   0 bytes   0 bytes  "
		"failed (ETIMEDOUT)\n"
		"p.test:443                                    tcp       0   0 bytes   0 bytes  ok "
		"(requests not seen: passed through)\n"
		"m.test:443                                    tcp       0   0 bytes   0 bytes  "
		"partly failed (pinned)\n"
		"Names that were only looked up:\n"
		"        none.test (NXDOMAIN)\n"
		"        half.test\n"
		"        tricky\\x1b[2J.test\n");
}

static void test_narrow(void **state)
{
	check(&(struct view_style){.columns = 80},
		"HOST                              PROTO   REQ       OUT        IN  RESULT\n"
		"169.254.169.254:80                tcp       0   0 bytes   0 bytes  REFUSED\n"
		"        an address of metadata services\n"
		"denied.test                       -         0   0 bytes   0 bytes  REFUSED\n"
		"        deny\n"
		"a.test:80                         tcp       1    1.2 MB 300 bytes  ok\n"
		"   200  POST http://a.test/form  1.2 MB sent\n"
		"…ne.of.packages.example.test:443  tcp       0   0 bytes   0 bytes  failed\n"
		"        ETIMEDOUT\n"
		"p.test:443                        tcp       0   0 bytes   0 bytes  ok\n"
		"        requests not seen: passed through\n"
		"m.test:443                        tcp       0   0 bytes   0 bytes  partly failed\n"
		"        pinned\n"
		"Names that were only looked up:\n"
		"        none.test (NXDOMAIN)\n"
		"        half.test\n"
		"        tricky\\x1b[2J.test\n");
}

static void test_nothing(void **state)
{
	struct view_filter filter = {0};
	scoped(network_table) struct network_table *table = network_table_new(&filter);
	scoped_str struct str text = {0};

	for (size_t i = 0; i < 11; i++) {
		scoped_mem char *lookup =
			mem_printf("\"net.dns\",\"name\":\"n%zu.test\",\"type\":\"A\"", i);

		add(table, i + 1, lookup);
	}
	network_table_text(table, &(struct view_style){0}, &text);
	assert_string_equal(text.p,
		"no connections\nNames that were only looked up:\n"
		"        n0.test\n        n1.test\n        n2.test\n        n3.test\n"
		"        n4.test\n        n5.test\n        n6.test\n        n7.test\n"
		"        and 3 more: cloche events\n");
}

/* Past what is kept, names are counted. */
static void test_bound(void **state)
{
	struct view_filter filter = {0};
	scoped(network_table) struct network_table *table = network_table_new(&filter);

	for (size_t i = 0; i < NETWORK_LOOKUPS_MAX + 5; i++) {
		scoped_mem char *lookup =
			mem_printf("\"net.dns\",\"name\":\"n%zu.test\",\"type\":\"A\"", i);

		add(table, i + 1, lookup);
	}
	add(table, 9999,
		"\"net.connect\",\"flow\":1,\"protocol\":\"tcp\",\"host\":\"n7.test\","
		"\"address\":\"203.0.113.1\",\"port\":80");
	assert_int_equal(network_table_settle(table), 1);
	assert_int_equal(network_lookups_n(network_table_lookups(table)), NETWORK_LOOKUPS_MAX);
	assert_int_equal(
		network_lookups_only(network_table_lookups(table)), NETWORK_LOOKUPS_MAX + 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
