/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "event/event_json.h"

static void test_round_trip(void **state)
{
	struct slice argv[] = {slice_of("/bin/echo"), slice_of(""), {.p = "\xff\xfe", .len = 2}};
	struct event ev = {.kind = EVENT_PROCESS_EXEC,
		.seq = 7,
		.guest_ns = 12,
		.wall_ms = 34,
		.pid = 5,
		.task = 6,
		.exec = slice_of("ex_1")};
	scoped_str struct str out = {0}, again = {0};
	scoped(event_line) struct event_line *line = NULL;
	struct err err;

	event_set(&ev, path, ((struct slice){.p = "/a\"\n\x80z", .len = 6}));
	event_set(&ev, argv, ((struct event_list){.items = argv, .n = 3}));
	event_set(&ev, uid, 0);
	event_set(&ev, result, ENOENT);
	event_set(&ev, labels, slice_of("{\"a\":\"b\"}"));
	event_json_write(&out, &ev, slice_of("sb_1"));
	assert_string_equal(out.p,
		"{\"v\":1,\"sandbox\":\"sb_1\",\"seq\":7,\"guest_ns\":12,\"wall_ms\":34,"
		"\"kind\":\"process.exec\",\"pid\":5,\"task\":6,\"exec\":\"ex_1\","
		"\"path\":\"/a\\\"\\n\xef\xbf\xbdz\",\"path_b64\":\"L2EiCoB6\","
		"\"argv\":[\"/bin/echo\",\"\",\"\xef\xbf\xbd\xef\xbf\xbd\"],"
		"\"argv_b64\":[\"L2Jpbi9lY2hv\",\"\",\"//4=\"],\"uid\":0,\"result\":\"ENOENT\","
		"\"labels\":{\"a\":\"b\"}}");
	assert_int_equal(event_json_read(str_slice(&out), &line, &err), 0);
	event_json_write(&again, event_json_get(line), slice_of("sb_1"));
	assert_string_equal(out.p, again.p);
}

static void test_bad_lines(void **state)
{
	static const struct {
		const char *line;
		int want;
	} cases[] = {
		{"", -EBADMSG},
		{"{", -EBADMSG},
		{"[]", -EBADMSG},
		{"{\"kind\":\"process.exec\"}", -EBADMSG},
		{"{\"kind\":\"later.kind\",\"seq\":1}", -ENOENT},
		{"{\"kind\":\"process.exec\",\"seq\":1,\"path\":5,\"argv\":\"x\",\"zzz\":null}", 0},
		{"{\"kind\":\"process.exec\",\"seq\":1,\"seq\":2}", -EBADMSG},
	};
	scoped(event_line) struct event_line *line = NULL;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			event_json_read(slice_of(cases[i].line), &line, &err), cases[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_bad_lines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
