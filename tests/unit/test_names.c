/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "gateway/names.h"

#define SECOND INT64_C(1000000000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)

#define MANY   50000 /* more than either table holds */

struct address {
	uint8_t bytes[16];
};

static struct address v4(uint32_t v)
{
	return (struct address){{[10] = 0xff,
		0xff,
		(uint8_t)(v >> 24),
		(uint8_t)(v >> 16),
		(uint8_t)(v >> 8),
		(uint8_t)v}};
}

static void expect(struct names *names, struct address a, int64_t now_ns, const char *all)
{
	char text[1024] = "";
	const char *host;
	size_t len = 0;

	for (size_t i = 0; (host = names_find(names, a.bytes, i, now_ns)); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "", host);
	assert_string_equal(text, all);
}

static void test_learn(void **state)
{
	scoped(names) struct names *names = names_new();
	struct address a = v4(0xc0000201), b = v4(0xc0000202);

	expect(names, a, 0, "");
	names_learn(names, "a.test", a.bytes, 60, 0);
	names_learn(names, "b.test", a.bytes, 60, 0);
	names_learn(names, "c.test", b.bytes, 60, 0);
	expect(names, a, 0, "b.test a.test");
	expect(names, b, 0, "c.test");
	names_learn(names, "a.test", a.bytes, 60, 0);
	expect(names, a, 0, "a.test b.test");
	/* The same bytes as an IPv4 address in another family are another address. */
	expect(names, (struct address){{0xc0, 0, 2, 1}}, 0, "");
}

static void test_forget(void **state)
{
	static const struct {
		uint32_t ttl_s;
		int64_t kept_ns;
	} cases[] = {{0, HOUR}, {60, HOUR}, {7200, 2 * HOUR}, {UINT32_MAX, DAY}};
	struct address a = v4(0xc0000201);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped(names) struct names *names = names_new();

		names_learn(names, "a.test", a.bytes, cases[i].ttl_s, 5);
		expect(names, a, 5 + cases[i].kept_ns - 1, "a.test");
		expect(names, a, 5 + cases[i].kept_ns, "");
		/* Heard again, and for a shorter time: what was promised stands. */
		names_learn(names, "a.test", a.bytes, cases[i].ttl_s, 5);
		names_learn(names, "a.test", a.bytes, 0, 5);
		names_learn(names, "b.test", a.bytes, 0, 5 + cases[i].kept_ns);
		expect(names, a, 5 + cases[i].kept_ns - 1, "b.test a.test");
		expect(names, a, 5 + cases[i].kept_ns, "b.test");
	}
}

/* A name that is learned again from where it is kept. */
static void test_own_text(void **state)
{
	scoped(names) struct names *names = names_new();
	struct address a = v4(0xc0000201);

	names_learn(names, "a.test", a.bytes, 0, 0);
	names_learn(names, names_find(names, a.bytes, 0, 0), a.bytes, 0, 0);
	expect(names, a, 0, "a.test");
}

static void test_many_names(void **state)
{
	scoped(names) struct names *names = names_new();
	struct address a = v4(0xc0000201), b = v4(0xc0000202);
	char host[32];

	names_learn(names, "b.test", b.bytes, 0, 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(host, sizeof(host), "%d.test", i);
		names_learn(names, host, a.bytes, 0, 0);
	}
	assert_string_equal(names_find(names, a.bytes, 0, 0), "999.test");
	assert_string_equal(names_find(names, a.bytes, NAMES_PER_ADDRESS - 1, 0), "968.test");
	assert_null(names_find(names, a.bytes, NAMES_PER_ADDRESS, 0));
	expect(names, b, 0, "b.test");
}

/* What is used stays, what was not used for longest goes, and the rest is there. */
static void test_many_addresses(void **state)
{
	scoped(names) struct names *names = names_new();
	struct address used = v4(0xc0000201), idle = v4(0xc0000202);
	char host[32];

	names_learn(names, "used.test", used.bytes, 0, 0);
	names_learn(names, "idle.test", idle.bytes, 0, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		for (int k = 0; k < 3; k++) { /* so that there are more names than places, too */
			snprintf(host, sizeof(host), "%d.%u.test", k, i);
			names_learn(names, host, v4(0x0a000000 + i).bytes, 0, 0);
		}
		assert_non_null(names_find(names, used.bytes, 0, 0));
	}
	expect(names, idle, 0, "");
	expect(names, v4(0x0a000000), 0, "");
	for (uint32_t i = MANY - 5000; i < MANY; i++)
		assert_non_null(names_find(names, v4(0x0a000000 + i).bytes, 2, 0));
}

static void test_many_places(void **state)
{
	scoped(names) struct names *names = names_new();

	for (uint32_t i = 0; i < MANY; i++)
		names_learn(names, "a.test", v4(0x0a000000 + i).bytes, 0, 0);
	expect(names, v4(0x0a000000), 0, "");
	for (uint32_t i = MANY - 10000; i < MANY; i++)
		expect(names, v4(0x0a000000 + i), 0, "a.test");
}

static void test_is_synthetic(void **state)
{
	static const struct {
		struct address address;
		bool is;
	} cases[] = {
		{{{[10] = 0xff, 0xff, 198, 18, 0, 0}}, true},
		{{{[10] = 0xff, 0xff, 198, 19, 255, 255}}, true},
		{{{[10] = 0xff, 0xff, 198, 17, 255, 255}}, false},
		{{{[10] = 0xff, 0xff, 198, 20, 0, 0}}, false},
		{{{[10] = 0xff, 0xff, 199, 18, 0, 0}}, false},
		{{{[12] = 198, 18, 0, 0}}, false},
		{{{0xfd, 0, 0, 0xc1}}, true},
		{{{0xfd, 0, 0, 0xc1, 0xff, [15] = 0xff}}, true},
		{{{0xfd, 0, 0, 0xc0}}, false},
		{{{0xfd, 0, 0, 0, [15] = 2}}, false},
		{{{0}}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (names_is_synthetic(cases[i].address.bytes) != cases[i].is)
			fail_msg("row %zu", i);
}

static void test_synthetic(void **state)
{
	scoped(names) struct names *names = names_new();
	struct address a4, a6, b4, again;

	names_synthetic(names, "a.test", false, a4.bytes);
	names_synthetic(names, "a.test", true, a6.bytes);
	names_synthetic(names, "b.test", false, b4.bytes);
	names_synthetic(names, "a.test", false, again.bytes);
	assert_memory_equal(a4.bytes, again.bytes, 16);
	assert_memory_not_equal(a4.bytes, b4.bytes, 16);
	assert_memory_equal(a4.bytes, v4(0xc6120001).bytes, 16);
	assert_true(names_is_synthetic(a4.bytes) && names_is_synthetic(a6.bytes));
	expect(names, a4, DAY, "a.test");
	expect(names, a6, DAY, "a.test");
	expect(names, b4, DAY, "b.test");
	/* Not handed out, but in the same ranges. */
	expect(names, v4(0xc6120000), 0, "");
	expect(names, v4(0xc6120003), 0, "");
	a6.bytes[8] = 1;
	expect(names, a6, 0, "");
	/* No answer gives a meaning to such an address. */
	names_learn(names, "evil.test", b4.bytes, 60, 0);
	names_learn(names, "evil.test", v4(0xc6120003).bytes, 60, 0);
	expect(names, b4, 0, "b.test");
	expect(names, v4(0xc6120003), 0, "");
}

static void test_many_synthetic(void **state)
{
	scoped(names) struct names *names = names_new();
	struct address kept, first, a;
	char host[32];

	names_synthetic(names, "kept.test", false, kept.bytes);
	names_synthetic(names, "first.test", false, first.bytes);
	/* Once around all numbers and more. */
	for (int i = 0; i < 140000; i++) {
		snprintf(host, sizeof(host), "%d.test", i);
		names_synthetic(names, host, false, a.bytes);
		assert_memory_not_equal(a.bytes, kept.bytes, 16);
		assert_true(names_is_synthetic(a.bytes));
		assert_string_equal(names_find(names, kept.bytes, 0, 0), "kept.test");
		if (i == 100000)
			assert_null(names_find(names, first.bytes, 0, 0)); /* not another's yet */
	}
	assert_string_equal(names_find(names, a.bytes, 0, 0), "139999.test");
	names_synthetic(names, "130000.test", false, a.bytes);
	assert_string_equal(names_find(names, a.bytes, 0, 0), "130000.test");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_own_text),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_many_addresses),
		cmocka_unit_test(test_many_places),
		cmocka_unit_test(test_is_synthetic),
		cmocka_unit_test(test_synthetic),
		cmocka_unit_test(test_many_synthetic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
