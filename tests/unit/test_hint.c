/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "supervisor/hint.h"

static void test_kinds(void **state)
{
	static const struct {
		const char *call;
		int result, want;
	} cases[] = {
		{"clone", EPERM, HINT_INNER_SANDBOX},
		{"unshare", EPERM, HINT_INNER_SANDBOX},
		{"unshare", ENOSYS, -ENOENT},
		{"mount", EPERM, HINT_MOUNT},
		{"perf_event_open", EPERM, HINT_PROFILE},
		{"io_uring_setup", ENOSYS, -ENOENT},
		{"keyctl", EPERM, -ENOENT},
		{"clone3", EPERM, -ENOENT},
		{"i386:5", ENOSYS, HINT_OLD_ABI},
		{"x32:2", EPERM, HINT_OLD_ABI},
		{"", EPERM, -ENOENT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event refused = {.kind = EVENT_SANDBOX_REFUSED};

		event_set_text(&refused, call, cases[i].call);
		event_set(&refused, result, cases[i].result);
		assert_int_equal(hint_find(&refused), cases[i].want);
	}
	(void)state;
}

static void test_rename(void **state)
{
	struct event ev = {.kind = EVENT_FILE_RENAME};

	assert_int_equal(hint_find(&ev), -ENOENT);
	event_set(&ev, result, EXDEV);
	assert_int_equal(hint_find(&ev), -ENOENT);
	event_set(&ev, result, EBUSY);
	assert_int_equal(hint_find(&ev), HINT_MOUNTED_FILE);
	ev.kind = EVENT_MOUNT_RENAME;
	assert_int_equal(hint_find(&ev), HINT_MOUNTED_FILE);
	(void)state;
}

static void test_event(void **state)
{
	const struct event refused = {.kind = EVENT_SANDBOX_REFUSED,
		.guest_ns = 5,
		.wall_ms = 6,
		.pid = 7,
		.task = 8,
		.exec = slice_of("ex_a")};

	for (int kind = 0; kind < HINT_N_KINDS; kind++) {
		struct event hint;

		hint_make((enum hint_kind)kind, &refused, &hint);
		assert_int_equal(hint.kind, EVENT_HINT);
		assert_true(hint.guest_ns == 5 && hint.wall_ms == 6);
		assert_true(hint.pid == 7 && hint.task == 8);
		assert_true(slice_is(hint.exec, "ex_a"));
		assert_true(event_has(&hint, reason) && event_has(&hint, advice));
		assert_true(hint.reason.len > 0 && hint.advice.len > 0);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
