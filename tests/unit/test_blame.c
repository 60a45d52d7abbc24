/* SPDX-License-Identifier: Apache-2.0 */
/* Which events of a record concern a path, whatever it was called. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "util/mem.h"
#include "view/blame.h"

/* Events in a row, as "w PATH" (written), "c PATH" (made), "d PATH", "r FROM TO", "x FROM TO" (both change places). */
static const struct blame_case {
	const char *events, *path, *rows;
} cases[] = {
	{"c /a;w /a;w /b", "/a", "written /a;created /a;"},
	{"w /a;w /a;w /a", "/a", "written /a x3;"},
	{"c /a;r /a /b;w /b", "/b", "written /b;renamed /a>/b;created /a;"},
	{"c /a;r /a /b;w /b", "/a", "renamed /a>/b;created /a;"},
	{"w /a;c /a;r /a /b", "/b", "renamed /a>/b;created /a;"},
	{"c /d/f;r /d /e;r /e/f /e/g", "/e/g", "renamed /e/f>/e/g;renamed /d>/e;created /d/f;"},
	{"w /d/f;r /d /e", "/d/f", "renamed /d>/e;written /d/f;"},
	{"w /d/f;w /dd;w /d", "/d", "written /d;written /d/f;"},
	{"c /t;r /t /a;d /a;c /t;w /t", "/a", "deleted /a;renamed /t>/a;created /t;"},
	{"w /a;w /b;x /a /b;w /a", "/a", "written /a x2;renamed /b>/a;renamed /a>/b;written /b;"},
	{"r /a /b;r /b /a", "/a", "renamed /b>/a;renamed /a>/b;"},
	{"w /a", "/nothing", ""},
};

static void add(struct blame *blame, char *text, int64_t n)
{
	char *kind = strsep(&text, " "), *path = strsep(&text, " ");
	struct event ev = {.seq = (uint64_t)n, .guest_ns = n, .wall_ms = n, .pid = 2};

	switch (*kind) {
	case 'r':
	case 'x':
		ev.kind = EVENT_FILE_RENAME;
		event_set_text(&ev, from, path);
		event_set_text(&ev, to, text);
		if (*kind == 'x')
			event_set(&ev, exchange, true);
		break;
	case 'd':
		ev.kind = EVENT_FILE_DELETE;
		event_set_text(&ev, path, path);
		break;
	default:
		ev.kind = EVENT_FILE_OPEN;
		event_set_text(&ev, path, path);
		event_set_text(&ev, access, "write");
		if (*kind == 'c')
			event_set(&ev, created, true);
	}
	blame_add(blame, &ev);
}

static void test_blame(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped(blame) struct blame *blame = blame_new();
		scoped_mem char *copy = mem_dup(cases[i].events);
		scoped_str struct str got = {0};
		char *rest = copy;
		int64_t n = 0;

		blame_ask(blame, slice_of(cases[i].path));
		for (char *one; (one = strsep(&rest, ";"));)
			add(blame, one, ++n);
		str_puts(&got, "");
		for (size_t k = 0, rows = blame_settle(blame); k < rows; k++) {
			const struct blame_row *row = blame_get(blame, k);

			str_printf(&got, "%s %.*s%s%.*s", blame_word(row->change),
				(int)row->from.len, row->from.p ? row->from.p : "",
				row->from.len ? ">" : "", (int)row->path.len, row->path.p);
			if (row->times > 1)
				str_printf(&got, " x%zu", row->times);
			str_putc(&got, ';');
		}
		if (strcmp(got.p ? got.p : "", cases[i].rows) != 0)
			fail_msg("%s, %s: got '%s', not '%s'", cases[i].events, cases[i].path,
				got.p, cases[i].rows);
	}
}

static void add_rename(struct blame *blame, const char *from, const char *to, int64_t n)
{
	scoped_mem char *text = mem_printf("r %s %s", from, to);

	add(blame, text, n);
}

/* A record may say that a folder was moved out of itself again and again: each time its old name grows. */
static void test_growing(void **state)
{
	scoped(blame) struct blame *blame = blame_new();
	struct mallinfo2 before = mallinfo2(), after;

	blame_ask(blame, slice_of("/x/s"));
	for (int64_t n = 0; n < 6000; n += 2) {
		add_rename(blame, "/x/of-a-rather-long-name", "/y", n);
		add_rename(blame, "/y", "/x", n + 1);
	}
	assert_true(blame_settle(blame) > 0);
	assert_true(blame_is_cut(blame));
	after = mallinfo2();
	assert_true(after.uordblks - before.uordblks < 16u << 20);
}

/* Old names below a folder that was asked for need no following: they leave room for those that do. */
static void test_below(void **state)
{
	scoped(blame) struct blame *blame = blame_new();
	char make[] = "c /tmp/new";
	size_t n;

	blame_ask(blame, slice_of("/x"));
	add(blame, make, 1);
	add_rename(blame, "/tmp/new", "/x/new", 2);
	for (int64_t i = 0; i < 2 * BLAME_ALIASES_MAX; i++) {
		scoped_mem char *from = mem_printf("/x/%d.part", (int)i);
		scoped_mem char *to = mem_printf("/x/%d", (int)i);

		add_rename(blame, from, to, 3 + i);
	}
	n = blame_settle(blame);
	assert_int_equal(n, 2 * BLAME_ALIASES_MAX + 2);
	assert_int_equal(blame_get(blame, n - 1)->change, BLAME_CREATED);
	assert_false(blame_is_cut(blame));
}

/* Where only mounts were traced, their events are all there is; else they say the same a second time. */
static void test_mounts(void **state)
{
	for (int has_files = 0; has_files < 2; has_files++) {
		scoped(blame) struct blame *blame = blame_new();
		struct slice sources[] = {slice_of("mounts"), slice_of("files")};
		struct event started = {.kind = EVENT_TRACE_STARTED};
		struct event ev = {.kind = EVENT_MOUNT_CREATE, .seq = 2, .guest_ns = 2, .pid = 2};

		event_set(&started, sources,
			((struct event_list){.items = sources, .n = has_files ? 2 : 1}));
		event_set_text(&ev, path, "/m/f");
		event_set_text(&ev, access, "write");
		event_set(&ev, created, true);
		blame_ask(blame, slice_of("/m"));
		blame_add(blame, &started);
		blame_add(blame, &ev);
		assert_int_equal(blame_settle(blame), has_files ? 0 : 1);
		if (!has_files)
			assert_int_equal(blame_get(blame, 0)->change, BLAME_CREATED);
	}
}

/* Two names for many files, long ones, changed over and over: following all of them would take hours. */
static void test_work_is_bounded(void **state)
{
	for (int n = 2; n <= 2000; n += 1998) {
		scoped(blame) struct blame *blame = blame_new();
		char name[3000], from[3100];

		memset(name, 'y', sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		blame_ask(blame, slice_of("/w/t"));
		for (int i = 0; i < n; i++)
			add_rename(blame, i % 2 ? "/b" : "/a", i % 2 ? "/a" : "/b", i + 1);
		for (int i = 0; i < 400; i++) {
			snprintf(from, sizeof(from), "/a/%d%s", i, name);
			add_rename(blame, from, "/w/t", n + i + 1);
		}
		assert_int_equal(blame_settle(blame), 402);
		assert_int_equal(blame_is_cut(blame), n > 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_blame),
		cmocka_unit_test(test_growing), cmocka_unit_test(test_below),
		cmocka_unit_test(test_mounts), cmocka_unit_test(test_work_is_bounded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
