/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "observer/claims.h"

/* What is removed, and which of the claims about /a/b, /a/bc and /d stay open. */
static void test_settling(void **state)
{
	static const struct {
		const char *removed;
		int open;
	} cases[] = {
		{"/a/b", 2},
		{"/a", 1},
		{"/a/bc", 2},
		{"/a/b/c", 3},
		{"/d", 2},
		{"/x", 3},
	};
	static const char *const paths[] = {"/a/b", "/a/bc", "/d"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped(claims) struct claims *claims = claims_new();
		struct claim claim = {.exec = 1, .looked_ns = 10};
		int open = 0;

		for (size_t p = 0; p < 3; p++)
			assert_true(claims_open(claims, slice_of(paths[p]), &claim));
		claims_settle(claims, slice_of(cases[i].removed));
		while (claims_pop(claims, 11, 0, &claim))
			open++;
		assert_int_equal(open, cases[i].open);
	}
	(void)state;
}

static void test_popping(void **state)
{
	scoped(claims) struct claims *claims = claims_new();
	struct claim got;

	assert_true(claims_open(
		claims, slice_of("/a"), &(struct claim){.exec = 1, .looked_ns = 10, .pid = 5}));
	assert_false(claims_pop(claims, 10, 0, &got));
	assert_false(claims_pop(claims, 0, 2, &got));
	assert_true(claims_pop(claims, 0, 1, &got));
	assert_int_equal(got.pid, 5);
	assert_false(claims_pop(claims, 100, 1, &got));
	/* at the end: whoever's, however young */
	assert_true(
		claims_open(claims, slice_of("/a"), &(struct claim){.exec = 7, .looked_ns = 99}));
	assert_true(claims_pop(claims, INT64_MAX, 0, &got));
	assert_int_equal(got.exec, 7);
	(void)state;
}

static void test_bound(void **state)
{
	scoped(claims) struct claims *claims = claims_new();
	const struct claim claim = {0};

	for (int i = 0; i < CLAIMS_MAX; i++)
		assert_true(claims_open(claims, slice_of("/a"), &claim));
	assert_false(claims_open(claims, slice_of("/a"), &claim));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settling),
		cmocka_unit_test(test_popping),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
