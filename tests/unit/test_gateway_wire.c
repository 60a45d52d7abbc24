/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/gateway_wire.h"

static const struct gateway_frame frames[] = {
	{.type = GATEWAY_READY},
	{.type = GATEWAY_EVENT, .id = UINT64_MAX, .rest = {"{}", 2}},
	{.type = GATEWAY_BLOB, .rest = {"\0\1", 2}},
	{.type = GATEWAY_BLOB},
	{.type = GATEWAY_FLUSHED, .id = 1},
	{.type = GATEWAY_ASK, .id = 2, .rest = {"{\"port\":1}", 10}},
	{.type = GATEWAY_BYTES_OUT, .id = UINT64_MAX},
	{.type = GATEWAY_BYTES_IN},
	{.type = GATEWAY_COUNT},
	{.type = GATEWAY_FLUSH, .id = 1},
	{.type = GATEWAY_RULES, .rest = {"{}", 2}},
	{.type = GATEWAY_ANSWER, .id = 2, .flag = true},
	{.type = GATEWAY_ANSWER, .id = 3},
};
#define N_FRAMES (sizeof(frames) / sizeof(frames[0]))

static void test_round_trip(void **state)
{
	scoped_str struct str out = {0};
	struct slice in;

	for (size_t i = 0; i < N_FRAMES; i++)
		gateway_wire_add(&out, &frames[i]);
	in = str_slice(&out);
	for (size_t i = 0; i < N_FRAMES; i++) {
		struct gateway_frame frame = {0};
		long n = gateway_wire_take(in, &frame);

		assert_true(n >= GATEWAY_WIRE_HEAD);
		for (size_t len = 0; len < (size_t)n; len++)
			assert_int_equal(gateway_wire_take((struct slice){in.p, len}, &frame), 0);
		assert_int_equal(frame.type, frames[i].type);
		assert_int_equal(frame.id, frames[i].id);
		assert_int_equal(frame.flag, frames[i].flag);
		assert_true(slice_eq(frame.rest, frames[i].rest));
		in.p += n;
		in.len -= (size_t)n;
	}
	assert_int_equal(in.len, 0);
}

static void test_refuses(void **state)
{
	static const struct {
		uint32_t len, type;
		char payload[16];
	} cases[] = {
		{0, 0, ""}, /* no such type */
		{0, 15, ""},
		{GATEWAY_WIRE_MAX + 1, GATEWAY_BLOB, ""},
		{1, GATEWAY_READY, "x"},  /* more than there should be */
		{7, GATEWAY_FLUSHED, ""}, /* less than an id */
		{9, GATEWAY_FLUSHED, ""},
		{8, GATEWAY_ANSWER, ""}, /* no flag */
		{9, GATEWAY_ANSWER, "\0\0\0\0\0\0\0\0\2"},
		{4, GATEWAY_EVENT, ""},
	};
	struct gateway_frame frame;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			gateway_wire_take((struct slice){(const char *)&cases[i],
						  GATEWAY_WIRE_HEAD + sizeof(cases[i].payload)},
				&frame),
			-EBADMSG);
}

static void test_sides(void **state)
{
	assert_true(gateway_wire_is_from_gateway(GATEWAY_READY));
	assert_true(gateway_wire_is_from_gateway(GATEWAY_ASK));
	assert_false(gateway_wire_is_from_gateway(GATEWAY_FLUSH));
	assert_false(gateway_wire_is_from_gateway(GATEWAY_ANSWER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
