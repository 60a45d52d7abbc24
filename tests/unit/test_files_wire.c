/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/files_wire.h"

static struct slice head_of(const struct str *out)
{
	return (struct slice){.p = out->p + FILES_WIRE_START, .len = out->len - FILES_WIRE_START};
}

static void test_there_and_back(void **state)
{
	const struct files_wire_request asked = {.op = FILES_WIRE_GREP,
		.path = slice_of("/a\xff"),
		.pattern = slice_of("p*"),
		.old_text = {.p = "o\0ld", .len = 4},
		.only = slice_of("*.c"),
		.first_line = 3,
		.last_line = INT64_MAX,
		.limit = 1000,
		.mode = -1,
		.content_len = 5,
		.literal = true,
		.parents = true};
	struct files_wire_request got;
	scoped_str struct str out = {0};

	files_wire_write(&out, &asked);
	assert_int_equal(files_wire_head_len(out.p), out.len - FILES_WIRE_START);
	assert_int_equal(files_wire_read(head_of(&out), &got), 0);
	assert_int_equal(got.op, FILES_WIRE_GREP);
	assert_true(slice_eq(got.path, asked.path) && slice_eq(got.pattern, asked.pattern));
	assert_true(slice_eq(got.old_text, asked.old_text) && slice_eq(got.only, asked.only));
	assert_int_equal(got.new_text.len, 0);
	assert_true(got.first_line == 3 && got.last_line == INT64_MAX && got.limit == 1000);
	assert_true(got.mode == -1 && got.content_len == 5);
	assert_true(got.literal && got.parents && !got.overwrite && !got.ignore_case);
}

static void test_what_is_cut(void **state)
{
	const struct files_wire_request asked = {.op = FILES_WIRE_VIEW, .path = slice_of("/a")};
	struct files_wire_request got;
	scoped_str struct str out = {0};
	size_t n_whole = 0;

	files_wire_write(&out, &asked);
	for (size_t len = 0; len < head_of(&out).len; len++) {
		struct slice part = {.p = head_of(&out).p, .len = len};

		n_whole += files_wire_read(part, &got) == 0; /* cut between two fields */
	}
	assert_int_equal(n_whole, 10);
	assert_int_equal(files_wire_read((struct slice){.p = "", .len = 0}, &got), -EBADMSG);
}

static void test_bad_starts(void **state)
{
	assert_int_equal(files_wire_head_len("CLF1\0\0\0\0"), 0);
	assert_int_equal(files_wire_head_len("CLF2\0\0\0\0"), -EBADMSG);
	assert_int_equal(files_wire_head_len("CLF1\xff\xff\xff\xff"), -EBADMSG);
}

static void test_names(void **state)
{
	for (int op = FILES_WIRE_CREATE; op <= FILES_WIRE_DOWNLOAD; op++)
		assert_int_equal(files_wire_find(files_wire_name((enum files_wire_op)op)), op);
	assert_int_equal(files_wire_find("exec"), FILES_WIRE_NONE);
	assert_int_equal(files_wire_find(""), FILES_WIRE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_what_is_cut),
		cmocka_unit_test(test_bad_starts),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
