/* SPDX-License-Identifier: Apache-2.0 */
/* When the next sample is due. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "supervisor/metering.h"
#include "util/clock.h"

static void test_interval(void **state)
{
	static const struct {
		int64_t ran_s;
		unsigned n_quiet;
		int64_t want_ms;
	} cases[] = {
		{0, 0, 1000},
		{299, 0, 1000},
		{600, 0, 2000},
		{3600, 0, 12000},
		{18000, 0, 60000},
		{1000000, 0, 60000},
		{0, 1, 2000},
		{0, 4, 16000},
		{0, 5, 30000},
		{0, 4000000000u, 30000},
		{600, 1, 2000},
		{18000, 7, 60000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			metering_interval_ms(cases[i].ran_s * CLOCK_NS_PER_S, cases[i].n_quiet),
			cases[i].want_ms);
}

/* What docs/events.md says of a day. */
static void test_day(void **state)
{
	int64_t at_ms = 0, n = 0;

	for (; at_ms < 86400000; n++)
		at_ms += metering_interval_ms(at_ms * CLOCK_NS_PER_MS, 0);
	assert_in_range(n, 2600, 2800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_day),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
