/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "event/event_json.h"
#include "util/jsonw.h"

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

/* The writer's fast way must say what jsonw says, wherever in a word the odd byte stands. */
static void test_same_as_jsonw(void **state)
{
	static const unsigned char odd[] = {0, 0x1f, 0x20, '"', '\\', 0x7e, 0x7f, 0x80, 0xa0, 0xff};
	char text[32];

	for (size_t len = 1; len <= 20; len++) {
		for (size_t i = 0; i < len * sizeof(odd); i++) {
			struct event ev = {.kind = EVENT_FILE_OPEN};
			scoped_str struct str line = {0}, want = {0};
			struct jsonw j = jsonw_to(&want);
			struct slice value = {.p = text, .len = len};
			struct event_list list = {.items = &value, .n = 1};

			memset(text, '!', sizeof(text));
			text[i / sizeof(odd)] = (char)odd[i % sizeof(odd)];
			event_set(&ev, path, value);
			event_set(&ev, argv, list);
			event_json_write(&line, &ev, slice_of("s"));
			str_puts(&want, "{\"v\":1,\"sandbox\":\"s\",\"seq\":0,\"guest_ns\":0,"
					"\"wall_ms\":0,\"kind\":\"file.open\"");
			j.comma = true;
			jsonw_kslice(&j, "path", value);
			jsonw_klist(&j, "argv", &value, 1);
			jsonw_object_end(&j);
			assert_string_equal(line.p, want.p);
			assert_int_equal(line.len, want.len);
		}
	}
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
		{"{\"kind\":\"hint\",\"seq\":1,\"path\":\"a\",\"path\":\"b\"}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":01}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1}x", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,\"argv\":[\"a\",]}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,\"argv\":[\"a\" \"b\"]}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,\"path\":\"\x01\"}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,\"path\":\"\xff\"}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,\"path\":\"a}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,\"uid\":-}", -EBADMSG},
		{"{\"kind\":\"hint\",\"seq\":1,\"uid\":1.5}", 0},
		{"{\"kind\":\"hint\", \"seq\" : 1 }", 0},
		{"{\"seq\":1,\"kind\":\"hint\",\"uid\":5,\"path\":\"a\"}", 0},
		{"{\"kind\":\"process.exec\",\"seq\":1,\"seq\":2}", -EBADMSG},
	};
	scoped(event_line) struct event_line *line = NULL;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			event_json_read(slice_of(cases[i].line), &line, &err), cases[i].want);
}

/* What both readers say of a line: a blank sends it to the one that reads all JSON. */
static void compare_readers(const char *line)
{
	scoped(event_line) struct event_line *quick = NULL, *slow = NULL;
	scoped_str struct str blank = {0}, a = {0}, b = {0};
	int r = event_json_read(slice_of(line), &quick, NULL);

	str_printf(&blank, "{ %s", line + 1);
	assert_int_equal(event_json_read(str_slice(&blank), &slow, NULL), r);
	if (r < 0)
		return;
	event_json_write(&a, event_json_get(quick), slice_of("s"));
	event_json_write(&b, event_json_get(slow), slice_of("s"));
	assert_string_equal(a.p, b.p);
	assert_int_equal(a.len, b.len);
}

static void test_readers_agree(void **state)
{
	static const char *const ends[] = {
		"\"path\":\"a\\nb\\\"c\\\\d\\t\\r\\b\\f\\/\"}",
		"\"path\":\"\\u0041\\u00e9\\u20ac\\u0000z\"}",
		"\"path\":\"\\ud83d\\ude00\"}",
		"\"path\":\"\\ud83d\"}",
		"\"path\":\"\\x\"}",
		"\"path\":\"\\u00g0\"}",
		"\"path\":\"\\u00\"}",
		"\"path\":\"\\\"}",
		"\"path\":\"\\\\\",\"argv\":[\"\\\"\",\"\\\\\"]}",
		"\"path\":\"a\x7f\xc3\xa9\",\"argv\":[\"\"]}",
		"\"pat\\u0068\":\"a\"}",
		"\"path\":\"12345678\x1f\"}",
		"\"path\":\"1234567812\x01\"}",
		"\"headers\":{}}",
		"\"headers\":{},\"response_headers\":{\"a\":\"\"}}",
		"\"headers\":{\"a\":\"b\",\"c\":\"\\\"\\u0011\"},\"body\":\"{\\\"a\\\":1}\"}",
		"\"headers\":{\"a\":\"b\",\"a\":\"c\"}}",
		"\"headers\":{\"a\":\"b\",\"\\u0061\":\"c\"}}",
		"\"headers\":{\"a\":\"\\q\"}}",
		"\"headers\":{\"a\":\"b\",}}",
		"\"headers\":{\"a\":\"b\"\"c\":\"d\"}}",
		"\"headers\":{,\"a\":\"b\"}}",
		"\"headers\":{\"a\":5,\"c\":[null]}}",
		"\"headers\":{\"a\":{\"b\":\"c\"}}}",
		"\"headers\":{\"a\":\"b\"",
		"\"headers\":{",
	};
	scoped_str struct str line = {0};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		str_reset(&line);
		str_printf(&line, "{\"v\":1,\"seq\":3,\"kind\":\"net.http\",%s", ends[i]);
		compare_readers(line.p);
	}
}

/* More names than the quick reader compares: the last one came before. */
static void test_many_names(void **state)
{
	scoped_str struct str line = {0};

	for (int last = 0; last < 2; last++) {
		str_reset(&line);
		str_puts(&line, "{\"v\":1,\"seq\":3,\"kind\":\"net.http\",\"headers\":{");
		for (int i = 0; i < 200; i++)
			str_printf(&line, "\"n%d\":\"v\",", i);
		str_printf(&line, "\"n%d\":\"v\"}}", last ? 200 : 7);
		compare_readers(line.p);
	}
}

/* A line that our writer made, and one with an escape that it would not make. */
static void test_quick_way(void **state)
{
	static const char plain[] = "{\"v\":1,\"sandbox\":\"s\",\"seq\":9,\"guest_ns\":-5,\"wall_"
				    "ms\":7,\"kind\":\"exec.end\","
				    "\"pid\":1,\"exec\":\"ex\",\"internal\":true,\"argv\":[\"a\","
				    "\"\",\"\xc3\xa9\"],\"cwd\":\"/w\","
				    "\"result\":\"ENOENT\",\"args\":[],\"task\":\"do\","
				    "\"terminal\":false,\"stdout\":\"%s\"}";
	scoped(event_line) struct event_line *quick = NULL, *slow = NULL;
	scoped_str struct str with = {0}, without = {0}, a = {0}, b = {0};
	const struct event *ev;

	str_printf(&without, plain, "n");
	str_printf(&with, plain, "\\u006e");
	assert_int_equal(event_json_read(str_slice(&without), &quick, NULL), 0);
	assert_int_equal(event_json_read(str_slice(&with), &slow, NULL), 0);
	event_json_write(&a, event_json_get(quick), slice_of("s"));
	event_json_write(&b, event_json_get(slow), slice_of("s"));
	assert_string_equal(a.p, without.p);
	assert_string_equal(b.p, without.p);
	ev = event_json_get(quick);
	assert_int_equal(ev->argv.n, 3);
	assert_int_equal(ev->args.n, 0);
	assert_string_equal(ev->argv.items[2].p, "\xc3\xa9");
	assert_int_equal(ev->task, 0);
}

/* An exchange of the network: objects kept as they came, every kind of field there and back. */
static void test_network_round_trip(void **state)
{
	static const char text[] =
		"{\"v\":1,\"sandbox\":\"s\",\"seq\":3,\"guest_ns\":1,\"wall_ms\":2,\"kind\":"
		"\"net.http\",\"pid\":4,\"exec\":\"ex\",\"flow\":5,\"protocol\":\"h2\",\"host\":"
		"\"a.test\",\"address\":\"fd00::1\",\"port\":443,\"duration_ns\":6,\"method\":"
		"\"POST\",\"url\":\"https://a.test/\",\"headers\":{\"z\":\"1\",\"a\":\"\\\"\"},"
		"\"body_bytes\":3,\"body\":\"a\\nb\",\"body_encoding\":\"utf8\",\"body_truncated\":"
		"true,\"status\":200,\"response_headers\":{},\"secrets\":[\"K\"]}";
	scoped(event_line) struct event_line *line = NULL;
	scoped_str struct str again = {0};
	const struct event *ev;

	assert_int_equal(event_json_read(slice_of(text), &line, NULL), 0);
	ev = event_json_get(line);
	assert_int_equal(ev->kind, EVENT_NET_HTTP);
	assert_int_equal(ev->port, 443);
	assert_string_equal(ev->headers.p, "{\"z\":\"1\",\"a\":\"\\\"\"}");
	event_json_write(&again, ev, slice_of("s"));
	assert_string_equal(again.p, text);
}

static void test_journals(void **state)
{
	assert_true(event_kind_is_log(EVENT_NET_RULES));
	assert_true(event_kind_is_log(EVENT_NET_ASKED));
	assert_true(event_kind_is_log(EVENT_NET_GATEWAY));
	assert_true(event_kind_is_log(EVENT_TRACE_CLEARED));
	assert_false(event_kind_is_log(EVENT_NET_REFUSED));
	assert_false(event_kind_is_log(EVENT_NET_HTTP));
	assert_false(event_kind_is_log(EVENT_SECRET_MISUSE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_network_round_trip), cmocka_unit_test(test_journals),
		cmocka_unit_test(test_same_as_jsonw), cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_quick_way), cmocka_unit_test(test_readers_agree),
		cmocka_unit_test(test_many_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
