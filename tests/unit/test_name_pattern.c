/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "util/name_pattern.h"

static const struct {
	const char *pattern, *path;
	int matches;
} rows[] = {
	{"a", "a", 1},
	{"a", "b", 0},
	{"a", "aa", 0},
	{"a", "a/b", 0},
	{"a/b", "a/b", 1},
	{"/a//b/", "a/b", 1},
	{"*", "abc", 1},
	{"*", ".hidden", 1},
	{"*", "a/b", 0},
	{"a*c", "abbc", 1},
	{"a*c", "abbcd", 0},
	{"a*b*c", "aXbYbZc", 1},
	{"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", 0},
	{"?", "a", 1},
	{"?", "/", 0},
	{"??", "\xc3\xa4", 1},
	{"[abc]x", "bx", 1},
	{"[a-c]x", "dx", 0},
	{"[!a-c]x", "dx", 1},
	{"[^a-c]x", "ax", 0},
	{"[]]", "]", 1},
	{"[!]]", "]", 0},
	{"[a-]", "-", 1},
	{"[", "[", 1},
	{"[ab", "[ab", 1},
	{"[\\]]", "]", 1},
	{"\\*", "*", 1},
	{"\\*", "a", 0},
	{"a\\", "a\\", 1},
	{"[a/b]", "a", 0},
	{"**", "a", 1},
	{"**", "a/b/c", 1},
	{"**/c", "c", 1},
	{"**/c", "a/b/c", 1},
	{"**/c", "a/b/cd", 0},
	{"a/**", "a", 1},
	{"a/**", "a/b/c", 1},
	{"a/**", "b/a", 0},
	{"a/**/z", "a/z", 1},
	{"a/**/z", "a/b/c/z", 1},
	{"a/**/b/**/z", "a/b/z", 1},
	{"a/**/b/**/z", "a/x/b/y/b/z", 1},
	{"a/**/b/**/z", "a/x/z", 0},
	{"**/**/**/x", "x", 1},
	{"a**b", "axxb", 1},
	{"a**b", "a/b", 0},
	{"", "a", 0},
	{"\xff*", "\xff\xfe", 1},
};

static void test_matches(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (name_pattern_matches(slice_of(rows[i].pattern), slice_of(rows[i].path)) !=
			rows[i].matches)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].path);
}

static const struct {
	const char *pattern, *folder;
	int leads;
} folders[] = {
	{"a/b", "a", 1},
	{"a/b", "b", 0},
	{"a/b", "a/b", 0},
	{"*/b", "x", 1},
	{"*/b", "x/b", 0},
	{"**/b", "x/y/z", 1},
	{"a/**", "a", 1},
	{"a/**", "b", 0},
	{"a/**/b", "a/x/y", 1},
	{"a", "a", 0},
};

static void test_leads(void **state)
{
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (name_pattern_leads(slice_of(folders[i].pattern), slice_of(folders[i].folder)) !=
			folders[i].leads)
			fail_msg("'%s' and '%s'", folders[i].pattern, folders[i].folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_leads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
