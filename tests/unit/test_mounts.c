/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "observer/mount_files.h"
#include "observer/mount_places.h"
#include "observer/mount_unseen.h"

static void test_places(void **state)
{
	static const struct mount_place list[] = {
		{"/p", false}, {"/p/tools", true}, {"/p/tools/own", false}, {"/etc/one", false}};
	static const struct {
		const char *path;
		bool has;
	} cases[] = {
		{"/p", true},
		{"/p/a", true},
		{"/pa", false},
		{"/p/tools", false},
		{"/p/tools/x", false},
		{"/p/toolsx", true},
		{"/p/tools/own/x", true},
		{"/etc/one", true},
		{"/etc/on", false},
		{"/", false},
		{"", false},
	};
	scoped(mount_places) struct mount_places *places = mount_places_new(list, 4);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mount_places_has(places, slice_of(cases[i].path)), cases[i].has);
	(void)state;
}

static void test_turning(void **state)
{
	static const struct mount_place list[] = {{"/p", false}};
	static const struct {
		enum event_kind kind;
		const char *path, *to, *access, *path_state;
		bool created;
		int result;
		int turned; /* -1: not at all */
	} cases[] = {
		{EVENT_FILE_OPEN, "/p/a", NULL, "read", NULL, false, 0, EVENT_MOUNT_OPEN},
		{EVENT_FILE_OPEN, "/p/a", NULL, "write", NULL, true, 0, EVENT_MOUNT_CREATE},
		{EVENT_FILE_OPEN, "/p/a", NULL, "path", NULL, false, 0, -1},
		{EVENT_FILE_OPEN, "/p/a", NULL, "read", "memory", false, 0, -1},
		{EVENT_FILE_OPEN, "/q/a", NULL, "read", NULL, false, 0, -1},
		{EVENT_FILE_OPEN, "/p/a", NULL, "read", NULL, false, ENOENT, -1},
		{EVENT_FILE_OPEN, "/p/a", NULL, "read", NULL, false, ENOTDIR, -1},
		{EVENT_FILE_OPEN, "/p/a", NULL, "read", NULL, false, EACCES, EVENT_MOUNT_OPEN},
		{EVENT_FILE_RENAME, "/p/a", "/q/a", NULL, NULL, false, 0, EVENT_MOUNT_RENAME},
		{EVENT_FILE_RENAME, "/q/a", "/p/a", NULL, NULL, false, EXDEV, EVENT_MOUNT_RENAME},
		{EVENT_FILE_RENAME, "/q/a", "/q/b", NULL, NULL, false, 0, -1},
		{EVENT_FILE_DELETE, "/p/a", NULL, NULL, NULL, false, 0, EVENT_MOUNT_DELETE},
		{EVENT_FILE_TRUNCATE, "/p/a", NULL, NULL, NULL, false, 0, EVENT_MOUNT_TRUNCATE},
		{EVENT_FILE_LINK, "/p/a", NULL, NULL, NULL, false, 0, EVENT_MOUNT_CREATE},
		{EVENT_DIR_CREATE, "/p/a", NULL, NULL, NULL, false, 0, EVENT_MOUNT_MKDIR},
		{EVENT_FILE_MODE, "/p/a", NULL, NULL, NULL, false, 0, -1},
		{EVENT_PROCESS_EXEC, "/p/a", NULL, NULL, NULL, false, 0, -1},
	};
	scoped(mount_places) struct mount_places *places = mount_places_new(list, 1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event ev = {.kind = cases[i].kind};

		if (cases[i].to)
			event_set_text(&ev, from, cases[i].path);
		else
			event_set_text(&ev, path, cases[i].path);
		event_set_text(&ev, to, cases[i].to);
		event_set_text(&ev, access, cases[i].access);
		event_set_text(&ev, path_state, cases[i].path_state);
		if (cases[i].created)
			event_set(&ev, created, true);
		if (cases[i].result)
			event_set(&ev, result, cases[i].result);
		assert_int_equal(mount_places_turn(places, &ev), cases[i].turned >= 0);
		assert_int_equal(
			ev.kind, cases[i].turned >= 0 ? cases[i].turned : (int)cases[i].kind);
	}
	(void)state;
}

/* What becomes of the files /a/x, /a/y/z and /ab. */
static void test_renames(void **state)
{
	static const struct {
		const char *from, *to;
		bool is_exchange;
		const char *paths[3];
		int deleted; /* which of them, -1: none */
	} cases[] = {
		{"/a", "/b", false, {"/b/x", "/b/y/z", "/ab"}, -1},
		{"/a/x", "/ab", false, {"/ab", "/a/y/z", "/ab"}, 2},
		{"/a/x", "/ab", true, {"/ab", "/a/y/z", "/a/x"}, -1},
		{"/nothing", "/a/x", false, {"/a/x", "/a/y/z", "/ab"}, 0},
		{"/nothing", "/a", false, {"/a/x", "/a/y/z", "/ab"}, -1},
	};
	static const char *const paths[] = {"/a/x", "/a/y/z", "/ab"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped(mount_files) struct mount_files *files = mount_files_new();

		for (size_t k = 0; k < 3; k++)
			(void)mount_files_add(
				files, 7, &(struct mount_file){.file = k + 1}, slice_of(paths[k]));
		mount_files_renamed(files, slice_of(cases[i].from), slice_of(cases[i].to),
			cases[i].is_exchange);
		for (size_t k = 0; k < 3; k++) {
			const struct mount_file *file = mount_files_find(files, k + 1);

			assert_string_equal(file->path, cases[i].paths[k]);
			assert_int_equal(file->is_deleted, cases[i].deleted == (int)k);
		}
	}
	(void)state;
}

static void test_files_and_openers(void **state)
{
	scoped(mount_files) struct mount_files *files = mount_files_new();
	struct mount_file *one, *two;

	mount_files_opener(files, 7, 100);
	assert_true(mount_inode_has_opener(mount_files_inode(files, 7), 100));
	assert_false(mount_inode_has_opener(mount_files_inode(files, 7), 101));
	one = mount_files_add(files, 7, &(struct mount_file){.file = 1}, slice_of("/one"));
	two = mount_files_add(files, 7, &(struct mount_file){.file = 2}, slice_of("/two"));
	assert_int_equal(mount_files_count(files), 2);
	for (int i = 0; i < 10; i++)
		mount_files_turn(files); /* open: stays */
	assert_ptr_equal(mount_files_inode(files, 7), one->inode);
	mount_files_remove(files, one);
	assert_ptr_equal(mount_files_find(files, 2), two);
	assert_null(mount_files_find(files, 1));
	mount_files_deleted(files, slice_of("/two"));
	assert_true(two->is_deleted);
	mount_files_remove(files, two);
	assert_null(mount_files_first(files));
	for (int i = 0; i < 3; i++)
		mount_files_turn(files);
	assert_null(mount_files_inode(files, 7));
	for (int pid = 1; pid < 20; pid++)
		mount_files_opener(files, 8, pid);
	assert_true(mount_inode_has_opener(mount_files_inode(files, 8), 1)); /* too many to tell */
	(void)state;
}

static void test_unseen(void **state)
{
	scoped(mount_unseen) struct mount_unseen *unseen = mount_unseen_new();
	const struct mount_unseen_open late = {.inode = 1, .host_pid = 10, .guest_ns = 5},
				       own = {.inode = 2,
					       .host_pid = 11,
					       .pid = 3,
					       .guest_ns = 6,
					       .entered = true};
	struct event ev;

	assert_true(mount_unseen_add(unseen, &late, slice_of("/late")));
	assert_true(mount_unseen_add(unseen, &own, slice_of("/own")));
	assert_true(mount_unseen_add(unseen, &own, slice_of("/own"))); /* the same once more */
	assert_false(mount_unseen_next(unseen, 5 + MOUNT_UNSEEN_NS - 1, &ev));
	assert_false(mount_unseen_settle(unseen, 1, 10));
	mount_unseen_closed(unseen, 2, true);
	assert_true(mount_unseen_waits(unseen));
	assert_true(mount_unseen_next(unseen, 6 + MOUNT_UNSEEN_NS, &ev));
	assert_int_equal(ev.kind, EVENT_MOUNT_OPEN);
	assert_true(slice_is(ev.path, "/own") && slice_is(ev.access, "write"));
	assert_true(ev.witness && ev.entered && ev.pid == 3);
	assert_false(mount_unseen_waits(unseen));
	assert_true(mount_unseen_next(unseen, 6 + MOUNT_UNSEEN_NS, &ev));
	assert_int_equal(ev.kind, EVENT_MOUNT_CLOSE);
	assert_false(mount_unseen_next(unseen, INT64_MAX, &ev));
	assert_true(mount_unseen_add(unseen, &late, slice_of("/late")));
	mount_unseen_closed(unseen, 1, false);
	assert_true(mount_unseen_settle(unseen, 1, 10));
	(void)state;
}

/* Full of opens that wait: no more. Of those that were told: the oldest go. */
static void test_unseen_bound(void **state)
{
	scoped(mount_unseen) struct mount_unseen *unseen = mount_unseen_new();
	struct mount_unseen_open open = {.host_pid = 1};
	struct event ev;

	for (open.inode = 1; open.inode <= MOUNT_UNSEEN_MAX; open.inode++)
		assert_true(mount_unseen_add(unseen, &open, slice_of("/x")));
	assert_false(mount_unseen_add(unseen, &open, slice_of("/x")));
	assert_true(mount_unseen_next(unseen, INT64_MAX, &ev));
	assert_true(mount_unseen_add(unseen, &open, slice_of("/x")));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_places),
		cmocka_unit_test(test_turning), cmocka_unit_test(test_renames),
		cmocka_unit_test(test_files_and_openers), cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_unseen_bound)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
