/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/idmap.h"
#include "sandbox/idrange.h"
#include "sandbox/user.h"

#define BASE 1000000u
#define NONE UINT32_MAX

static uint32_t to_inside(const struct idmap *map, uint32_t disk)
{
	for (size_t i = 0; i < map->n; i++)
		if (disk - map->lines[i].disk < map->lines[i].n)
			return map->lines[i].host + (disk - map->lines[i].disk) - BASE;
	return NONE;
}

/* The kernel refuses lines that overlap on either side, and every id inside must have one place. */
static void assert_sound(const struct idmap *map)
{
	for (size_t i = 0; i < map->n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct idmap_line *a = &map->lines[i], *b = &map->lines[k];

			assert_true(a->disk + a->n <= b->disk || b->disk + b->n <= a->disk);
			assert_true(a->host + a->n <= b->host || b->host + b->n <= a->host);
		}
	for (size_t i = 0; i < map->n; i++) {
		assert_true(map->lines[i].host >= BASE);
		assert_true(map->lines[i].host + map->lines[i].n <= BASE + IDRANGE_LEN);
	}
}

static void test_maps(void **state)
{
	static const struct {
		uint32_t owner, disk, want_all, want_owner_only;
	} cases[] = {
		{1000, 1000, 0, 0},
		{1000, 0, 1000, NONE},
		{1000, 33, 33, NONE},
		{1000, 65535, 65535, NONE},
		{1000, 65536, NONE, NONE},
		{0, 0, 0, 0},
		{0, 1000, 1000, NONE},
		{1, 1, 0, 0},
		{1, 0, 1, NONE},
		{1, 2, 2, NONE},
		{65535, 65535, 0, 0},
		{65535, 0, 65535, NONE},
		{200000, 200000, 0, 0},
		{200000, 0, 65533, NONE},
		{200000, 65533, NONE, NONE},
		{200000, 65534, 65534, NONE},
		{1000, BASE + 7, NONE, 7},
		{1000, BASE, NONE, NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct idmap all, owner_only;

		idmap_all(&all, cases[i].owner, BASE);
		idmap_owner_only(&owner_only, cases[i].owner, BASE);
		assert_sound(&all);
		assert_sound(&owner_only);
		if (to_inside(&all, cases[i].disk) != cases[i].want_all ||
			to_inside(&owner_only, cases[i].disk) != cases[i].want_owner_only)
			fail_msg("row %zu: %u and %u", i, to_inside(&all, cases[i].disk),
				to_inside(&owner_only, cases[i].disk));
	}
}

static void test_subids(void **state)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = {
		{"", 0},
		{"alice:1000000:65536\n", 1},
		{"alice:934464:65536\n", 0},
		{"alice:934464:65537\n", 1},
		{"alice:1065536:65536\n", 0},
		{"alice:1065535:1\n", 1},
		{"cloche:1000000:65536\n", 0},
		{"# comment\nbob:1:2\n1000:1000001:1", 1},
		{"alice:1000000:0\n", 0},
		{"alice:0:18446744073709551615\n", 1},
		{"garbage\n::\nalice:x:y\n", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (idrange_is_given(cases[i].text, BASE) != cases[i].want)
			fail_msg("row %zu: %s", i, cases[i].text);
}

static void test_passwd(void **state)
{
	static const char text[] =
		"root:x:0:0:root:/root:/bin/bash\nbroken\n:x:5:5::/:\n"
		"me:x:1000:1001:Me,,,:/home/me:/bin/sh\nbig:x:70000:1:::\nlast:x:7:8::/l:/bin/sh";
	struct user user = {0};

	assert_int_equal(user_parse_passwd(text, "me", 0, &user), 1);
	assert_int_equal(user.uid, 1000);
	assert_int_equal(user.gid, 1001);
	assert_string_equal(user.home, "/home/me");
	assert_int_equal(user_parse_passwd(text, NULL, 7, &user), 1);
	assert_string_equal(user.name, "last");
	assert_int_equal(user_parse_passwd(text, "m", 0, &user), 0);
	assert_int_equal(user_parse_passwd(text, "big", 0, &user), 0);
	assert_int_equal(user_parse_passwd("", "me", 0, &user), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_maps),
		cmocka_unit_test(test_subids), cmocka_unit_test(test_passwd)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
