/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "supervisor/exec_names.h"

static void test_knows_what_runs_and_what_ended_lately(void **state)
{
	scoped(exec_names) struct exec_names *names = exec_names_new();
	char id[16];

	assert_null(exec_names_find(names, 1));
	exec_names_add(names, 1, "ex_first");
	exec_names_add(names, 2, "ex_daemon");
	assert_string_equal(exec_names_find(names, 1), "ex_first");
	exec_names_end(names, 1);
	for (uint64_t i = 0; i < EXEC_NAMES_ENDED; i++) {
		assert_string_equal(exec_names_find(names, 1), "ex_first");
		(void)snprintf(id, sizeof(id), "ex_%u", (unsigned)i);
		exec_names_add(names, 10 + i, id);
		exec_names_end(names, 10 + i);
	}
	assert_null(exec_names_find(names, 1)); /* as many have ended after it */
	assert_string_equal(exec_names_find(names, 10), "ex_0");
	assert_string_equal(exec_names_find(names, 2), "ex_daemon"); /* it still runs */
}

static void test_last_name_of_a_group_counts(void **state)
{
	scoped(exec_names) struct exec_names *names = exec_names_new();

	exec_names_add(names, 7, "ex_a");
	exec_names_add(names, 7, "ex_b");
	assert_string_equal(exec_names_find(names, 7), "ex_b");
	assert_null(exec_names_find(names, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_knows_what_runs_and_what_ended_lately),
		cmocka_unit_test(test_last_name_of_a_group_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
