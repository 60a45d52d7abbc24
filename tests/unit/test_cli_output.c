/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs print: merged lines, tables, one event as a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "cli/event_line.h"
#include "cli/fold.h"
#include "cli/fold_merge.h"
#include "cli/table.h"

static struct str text_of(const char *text)
{
	struct str s = {0};

	str_puts(&s, text);
	return s;
}

static void test_merge(void **state)
{
	scoped(fold_merge) struct fold_merge *merge = fold_merge_new();
	scoped_str struct str a = text_of("{\"at\":\"2026-01-01T00:00:02.000Z\"}\n{\"at\":\"2026-"
					  "01-01T00:00:03.500Z\"}\n"),
			      a_lines = text_of("a2\na3\n"), out = {0},
			      b = text_of("{\"at\":\"2026-01-01T00:00:01.000Z\"}\n{\"at\":\"2026-"
					  "01-01T00:00:02.000Z\"}\n"),
			      b_lines = text_of("b1\nb2\n");

	fold_merge_add(merge, &a, &a_lines);
	fold_merge_add(merge, &b, &b_lines);
	fold_merge_lines(merge, &out);
	assert_string_equal(out.p, "b1\na2\nb2\na3\n");
}

static void test_lines(void **state)
{
	scoped_str struct str out = {0};

	assert_int_equal(
		fold_add_lines(&out, slice_of("[{\"a\":1,\"b\":\"\\u0000\\n\"},{}]"), "sb_x", NULL),
		0);
	assert_string_equal(out.p,
		"{\"sandbox\":\"sb_x\",\"a\":1,\"b\":\"\\u0000\\n\"}\n{\"sandbox\":\"sb_x\"}\n");
	str_reset(&out);
	assert_int_equal(fold_add_lines(&out, slice_of("[{\"a\":[]},3]"), NULL, NULL), 0);
	assert_string_equal(out.p, "{\"a\":[]}\n3\n");
	assert_int_equal(fold_add_lines(&out, slice_of("{}"), NULL, NULL), -EBADMSG);
}

static void test_table(void **state)
{
	static const char *const headings[] = {"ID", "LAST"};
	struct table table = {.headings = headings, .n_columns = 2};
	struct view_style narrow = {.columns = 12}, wide = {.color = true};
	scoped_str struct str out = {0};
	struct str *cells = table_row(&table);

	str_puts(&cells[0], "\xc3\xa9\xc3\xa9\xc3\xa9");
	str_puts(&cells[1], "one two three");
	cells = table_row(&table);
	str_puts(&cells[0], "x");
	table_add_text(&table, &narrow, &out);
	assert_string_equal(
		out.p, "ID   LAST\n\xc3\xa9\xc3\xa9\xc3\xa9  one tw\xe2\x80\xa6\nx    \n");
	str_reset(&out);
	table_add_text(&table, &wide, &out);
	assert_non_null(strstr(out.p, "one two three\n"));
	assert_memory_equal(out.p, "\033[2m", 4);
	table_done(&table);
}

static const struct {
	const char *path, *from, *to, *arg;
	enum event_kind kind;
	int result;
	const char *want;
} lines[] = {
	{.kind = EVENT_FILE_OPEN,
		.path = "/a\n\033[2J",
		.want = "00:00:01.500      12  file.open /a\\n\\x1b[2J\n"},
	{.kind = EVENT_FILE_OPEN,
		.path = "/etc/shadow",
		.result = EACCES,
		.want = "00:00:01.500      12  file.open /etc/shadow EACCES\n"},
	{.kind = EVENT_FILE_RENAME,
		.from = "/a",
		.to = "/b",
		.want = "00:00:01.500      12  file.rename /a -> /b\n"},
	{.kind = EVENT_PROCESS_EXEC,
		.path = "/bin/sh",
		.arg = "a b",
		.want = "00:00:01.500      12  process.exec 'a b' path=/bin/sh\n"},
	{.kind = EVENT_PROCESS_EXIT, .want = "00:00:01.500      12  process.exit\n"},
};

static void test_event_line(void **state)
{
	const struct view_style plain = {0};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct event ev = {.kind = lines[i].kind, .wall_ms = 1500, .pid = 12};
		struct slice arg = slice_of(lines[i].arg);
		scoped_str struct str out = {0};

		event_set_text(&ev, path, lines[i].path);
		event_set_text(&ev, from, lines[i].from);
		event_set_text(&ev, to, lines[i].to);
		if (arg.p)
			event_set(&ev, argv, ((struct event_list){.items = &arg, .n = 1}));
		if (lines[i].result)
			event_set(&ev, result, lines[i].result);
		event_set(&ev, created, false); /* what is false is left out */
		event_line_add(&out, &ev, &plain);
		assert_string_equal(out.p, lines[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_event_line),
	};

	return cmocka_run_group_tests_name("cli_output", tests, NULL, NULL);
}
