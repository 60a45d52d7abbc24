/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/wire.h"

static void test_round_trip(void **state)
{
	scoped_str struct str out = {0};
	struct wire_frame frame;
	long n;

	wire_add(&out, WIRE_JSON, slice_of("{}"));
	wire_add(&out, WIRE_STDIN, slice_of(""));
	for (size_t len = 0; len < WIRE_HEAD + 2; len++)
		assert_int_equal(wire_take((struct slice){.p = out.p, .len = len}, &frame), 0);
	n = wire_take(str_slice(&out), &frame);
	assert_int_equal(n, WIRE_HEAD + 2);
	assert_int_equal(frame.type, WIRE_JSON);
	assert_true(slice_is(frame.payload, "{}"));
	n = wire_take((struct slice){.p = out.p + n, .len = out.len - (size_t)n}, &frame);
	assert_int_equal(n, WIRE_HEAD);
	assert_int_equal(frame.type, WIRE_STDIN);
	assert_int_equal(frame.payload.len, 0);
}

static void test_refuses(void **state)
{
	static const char too_long[] = "\x01\0\x40\0J\0\0\0", not_zero[] = "\0\0\0\0J\0\1\0";
	struct wire_frame frame;

	assert_int_equal(wire_take((struct slice){.p = too_long, .len = 8}, &frame), -EBADMSG);
	assert_int_equal(wire_take((struct slice){.p = not_zero, .len = 8}, &frame), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_refuses)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
