/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "sandbox/hide.h"
#include "util/path.h"

static void test_matches(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool is_folder, want;
	} cases[] = {
		{".env*", ".env", false, true},
		{".env*", "a/b/.env.local", false, true},
		{".env*", "a/env", false, false},
		{".env*", "a.env", false, false},
		{".ssh", "x/.ssh", true, true},
		{".ssh", "x/.ssh2", true, false},
		{".ssh/", ".ssh", false, false},
		{".ssh/", ".ssh", true, true},
		{"a/key", "a/key", false, true},
		{"/a/key", "a/key", false, true},
		{"a/key", "b/a/key", false, false},
		{"**/a/key", "b/a/key", false, true},
		{"**/a/key", "a/key", false, true},
		{"**/a/key", "xa/key", false, false},
		{"a/*", "a/b/c", false, false},
		{"*.pem", "deep/er/x.pem", false, true},
		{"", "a", false, false},
		{"/", "a", true, false},
		{"[", "[", false, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (hide_matches(cases[i].pattern, cases[i].path, cases[i].is_folder) !=
			cases[i].want)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].path);
}

static void test_find(void **state)
{
	char dir[] = "/tmp/cloche-hide.XXXXXX";
	struct spec_words patterns = {
		.items = (char *[]){(char[]){".env"}, (char[]){"secret/"}}, .n = 2};
	struct hide_list list;
	int fd;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(fd, "a", 0755), 0);
	assert_int_equal(mkdirat(fd, "secret", 0755), 0);
	assert_int_equal(mkdirat(fd, "node_modules", 0755), 0);
	assert_int_equal(symlinkat("/", fd, "loop"), 0);
	(void)close(openat(fd, "a/.env", O_CREAT | O_WRONLY, 0600));
	(void)close(openat(fd, "a/secret", O_CREAT | O_WRONLY, 0600));
	(void)close(openat(fd, "secret/.env", O_CREAT | O_WRONLY, 0600));
	(void)close(openat(fd, "node_modules/.env", O_CREAT | O_WRONLY, 0600));
	hide_find(dir, &patterns, &list);
	assert_int_equal(list.n, 2);
	assert_false(list.is_cut);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
			list.items[i].path, list.items[i].is_folder ? "secret" : "a/.env");
	hide_list_done(&list);
	(void)close(fd);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches), cmocka_unit_test(test_find)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
