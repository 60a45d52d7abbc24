/* SPDX-License-Identifier: Apache-2.0 */
#include "changes_cases.h"
#include "changes_lines.h"

static void list_all(struct str *out)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;

	open_set(&set);
	changes = read_changes(set);
	list_changes(out, changes);
}

static void test_lists(void **state)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(changes_cases) / sizeof(changes_cases[0]); i++) {
		scoped_str struct str got = {0};

		begin(changes_cases[i].host, changes_cases[i].inside, changes_cases[i].meanwhile);
		list_all(&got);
		end();
		if (strcmp(got.p ? got.p : "", changes_cases[i].want) == 0)
			continue;
		print_error("case '%s'\nwant:\n%sgot:\n%s", changes_cases[i].name,
			changes_cases[i].want, got.p ? got.p : "");
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* Filesystems keep file times by nanoseconds, tens of milliseconds or seconds, rounded down. */
static void test_since(void **state)
{
	const struct change_set set = {.created_ns = 1700000100123456789};
	static const struct {
		int64_t ctime_ns;
		bool is_since;
	} cases[] = {
		{1700000100123456789, true},
		{1700000100123456788, false},
		{1700000100120000000, true},
		{1700000100110000000, false},
		{1700000100000000000, true},
		{1700000099000000000, true},
		{1700000098000000000, false},
		{1700000098123456789, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(changes_is_since(&set, cases[i].ctime_ns), cases[i].is_since);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return run_in_namespace(run);
}
