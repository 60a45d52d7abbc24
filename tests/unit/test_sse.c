/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "proto/sse.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Each event as name|id|data and a semicolon. */
static const struct {
	const char *in, *want;
} cases[] = {
	{"data: a\n\n", "message||a;"},
	{"event: exit\ndata: {}\n\n", "exit||{};"},
	{"data:a\n\ndata:  b\n\n", "message||a;message|| b;"},
	{"data: a\ndata: b\n\n", "message||a\nb;"},
	{"data\n\n", "message||;"},
	{"data\ndata\n\n", "message||\n;"},
	{": hello\n\n: \n\ndata: a\n\n", "message||a;"},
	{"event: lost\n\ndata: a\n\n", "message||a;"},
	{"id: 7\ndata: a\n\ndata: b\n\n", "message|7|a;message|7|b;"},
	{"id: 7\ndata: a\n\nid\ndata: b\n\n", "message|7|a;message||b;"},
	{"data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", "message||a;message||b;message||c;"},
	{"\xef\xbb\xbf"
	 "data: a\n\n",
		"message||a;"},
	{"\xef\xbb\xbf"
	 "data: a\n\n\xef\xbb\xbf"
	 "data: b\n\n",
		"message||a;"},
	{"retry: 5\nother: x\ndata: a\n\n", "message||a;"},
	{"data: never\n", ""},
	{"data: x: y\n\n", "message||x: y;"},
	{"", ""},
};

static int note(void *ctx, const struct sse_event *event)
{
	struct str *out = ctx;

	str_add(out, event->name.p, event->name.len);
	str_putc(out, '|');
	str_add(out, event->id.p, event->id.len);
	str_putc(out, '|');
	str_add(out, event->data.p, event->data.len);
	str_putc(out, ';');
	return slice_is(event->data, "stop") ? -ECANCELED : 0;
}

/* However the bytes are cut. */
static void test_events(void **state)
{
	for (size_t i = 0; i < N(cases); i++)
		for (size_t step = 1; step <= 9; step++) {
			scoped_str struct str out = {0};
			struct sse sse = {.on_event = note, .ctx = &out};
			struct slice in = slice_of(cases[i].in);

			for (size_t at = 0; at < in.len; at += step) {
				size_t n = in.len - at < step ? in.len - at : step;

				assert_int_equal(sse_read(&sse, (struct slice){in.p + at, n}), 0);
			}
			assert_string_equal(out.p ? out.p : "", cases[i].want);
			sse_done(&sse);
		}
}

static void test_an_end(void **state)
{
	scoped_str struct str out = {0};
	struct sse sse = {.on_event = note, .ctx = &out};

	assert_int_equal(sse_read(&sse, slice_of("data: stop\n\ndata: more\n\n")), -ECANCELED);
	assert_string_equal(out.p, "message||stop;");
	sse_done(&sse);
}

static void test_too_long(void **state)
{
	scoped_str struct str out = {0}, part = {0};
	struct sse sse = {.on_event = note, .ctx = &out};
	int r = sse_read(&sse, slice_of("data: "));

	str_reserve(&part, 1 << 20);
	memset(part.p, 'x', 1 << 20);
	part.len = 1 << 20;
	for (int i = 0; r == 0 && i < 40; i++)
		r = sse_read(&sse, str_slice(&part));
	assert_int_equal(r, -EMSGSIZE);
	assert_true(sse.line.len <= SSE_EVENT_MAX);
	sse_done(&sse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_events),
		cmocka_unit_test(test_an_end), cmocka_unit_test(test_too_long)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
