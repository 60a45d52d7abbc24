/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a sandbox over what an earlier one left: both together, beside the host's folder. */
#include "changes_cases.h"
#include "changes_lines.h"

static const struct {
	const char *name, *host, *first, *second, *want;
} cases[] = {
	{"renamed twice", "mkdir d; echo 1 > d/f", "mv d e", "mv e g; echo 2 > g/n",
		"renamed d -> g directory\nadded g/n\n"},
	{"made anew, then renamed", "mkdir d; echo 1 > d/f", "rm -r d; mkdir d; echo 2 > d/n",
		"mv d e", "removed d/f\nadded e/n\n"},
	{"renamed out of a new folder", "mkdir d; echo 1 > d/f; echo 2 > d/g", "mkdir n; mv d n/d",
		"mv n/d e; echo 3 > e/f",
		"renamed d -> e directory\nchanged d/f -> e/f\nadded n directory\n"},
	{"renamed in renamed folders, to longer and shorter names",
		"mkdir -p old-and-long/x/y; echo 1 > old-and-long/x/y/f; echo 2 > "
		"old-and-long/x/y/g",
		"mkdir p; mv old-and-long/x/y p/a-long-name; mv old-and-long o; mkdir q; mv "
		"p/a-long-name q/y",
		"mv q/y z; rm z/g",
		"renamed old-and-long -> o directory\nadded p directory\nadded q directory\n"
		"renamed old-and-long/x/y -> z directory\nremoved old-and-long/x/y/g\n"},
	{"folder in a folder, both renamed before and one of them after",
		"mkdir -p a-very-long-folder/b/c/d; echo 1 > a-very-long-folder/b/c/d/f",
		"mkdir n; mv a-very-long-folder n/s; mv n/s/b n/s/a-long-name-for-b; mv "
		"n/s/a-long-name-for-b/c n/s/a-long-name-for-b/k",
		"mv n/s/a-long-name-for-b/k/d top; echo 2 > top/n",
		"renamed a-very-long-folder -> n/s directory\n"
		"renamed a-very-long-folder/b -> n/s/a-long-name-for-b directory\n"
		"renamed a-very-long-folder/b/c -> n/s/a-long-name-for-b/k directory\n"
		"renamed a-very-long-folder/b/c/d -> top directory\nadded top/n\n"},
	{"a file without data, renamed before and after", "mkdir -p d/e; echo 1 > d/e/f",
		"mv d n; mv n/e n/long-name", "chmod 600 n/long-name/f; mv n/long-name/f g",
		"renamed d/e/f -> g\nrenamed d -> n directory\nrenamed d/e -> n/long-name "
		"directory\n"},
	{"a file without data out of a new folder", "echo 1 > f; echo 2 > k",
		"mkdir n; chmod 600 f; mv f n/f; mv k n/k", "chmod 640 n/k; mv n/f a; mv n/k b",
		"renamed f -> a\nrenamed k -> b\nadded n directory\n"},
};

static void list_all(struct str *out)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;

	open_set(&set);
	changes = read_changes(set);
	list_changes(out, changes);
}

static int compare(const char *name, const char *want)
{
	scoped_str struct str got = {0};

	list_all(&got);
	end();
	if (strcmp(got.p ? got.p : "", want) == 0)
		return 0;
	print_error("case '%s'\nwant:\n%sgot:\n%s", name, want, got.p ? got.p : "");
	return 1;
}

static void test_both(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(cases[i].host, cases[i].first, ":");
		go_on(cases[i].second);
		bad += compare(cases[i].name, cases[i].want);
	}
	assert_int_equal(bad, 0);
}

/* What one sandbox did is the same whether it lies in the upper or in a layer below it. */
static void test_first_alone(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(changes_cases) / sizeof(changes_cases[0]); i++) {
		if (strcmp(changes_cases[i].meanwhile, ":") != 0)
			continue;
		begin(changes_cases[i].host, changes_cases[i].inside, ":");
		go_on(":");
		bad += compare(changes_cases[i].name, changes_cases[i].want);
	}
	assert_int_equal(bad, 0);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_first_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return run_in_namespace(run);
}
