/* SPDX-License-Identifier: Apache-2.0 */
/* Old names of a path, and the set of prefixes that finds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/changes_names.h"
#include "util/prefixes.h"

/* "a>b" at 1, "b>c" at 2 and so on, and the names of a path, the newest first. */
static const struct {
	const char *renames[5], *path, *names[4];
	uint64_t since;
} cases[] = {
	{{"/a>/b"}, "/b/x", {"/a/x"}, 0},
	{{"/a>/b"}, "/b", {"/a"}, 0},
	{{"/a>/b"}, "/bb/x", {NULL}, 0},
	{{"/a>/b"}, "/a/x", {NULL}, 0},
	{{"/a>/b", "/b>/c"}, "/c/x", {"/b/x", "/a/x"}, 0},
	{{"/b>/c", "/a>/b"}, "/c/x", {"/b/x"}, 0},
	{{"/a/in>/a/out", "/a>/b"}, "/b/out/x", {"/a/out/x", "/a/in/x"}, 0},
	{{"/a>/b", "/b>/a", "/a>/b"}, "/b/x", {"/a/x", "/b/x", "/a/x"}, 0},
	{{"/a>/b", "/b>/a", "/a>/b"}, "/b/x", {"/a/x", "/b/x"}, 1},
	{{"/a>/b"}, "/b/x", {NULL}, 1},
	{{"/t>/w/f", "/t2>/w/f"}, "/w/f", {"/t2"}, 0},
	{{"/a>/b", "/c/x>/b/x"}, "/b/x", {"/c/x"}, 0},
};

static void add(struct changes_names *names, const char *rename, uint64_t at)
{
	const char *to = strchr(rename, '>') + 1;

	changes_names_add(
		names, (struct slice){rename, (size_t)(to - rename) - 1}, slice_of(to), at);
}

static void test_names(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped(changes_names) struct changes_names *names = changes_names_new();
		scoped_str struct str path = {0};
		uint64_t until = UINT64_MAX;

		for (size_t k = 0; k < 5 && cases[i].renames[k]; k++)
			add(names, cases[i].renames[k], k + 1);
		str_puts(&path, cases[i].path);
		for (size_t k = 0; k < 4 && cases[i].names[k]; k++) {
			assert_true(changes_names_back(names, cases[i].since, &path, &until));
			assert_string_equal(path.p, cases[i].names[k]);
		}
		assert_false(changes_names_back(names, cases[i].since, &path, &until));
	}
}

/* A name that would grow past what a path can be is followed no further. */
static void test_long_names(void **state)
{
	scoped(changes_names) struct changes_names *names = changes_names_new();
	scoped_str struct str path = {0}, from = {0};
	uint64_t until = UINT64_MAX;

	for (size_t i = 0; i < 4000; i++)
		str_putc(&from, i ? 'y' : '/');
	changes_names_add(names, str_slice(&from), slice_of("/b"), 1);
	str_puts(&path, "/b/");
	for (size_t i = 0; i < 95; i++)
		str_putc(&path, 'x');
	assert_true(changes_names_back(names, 0, &path, &until));
	assert_int_equal(path.len, 4096);
	str_reset(&path);
	str_puts(&path, "/b/");
	for (size_t i = 0; i < 96; i++)
		str_putc(&path, 'x');
	until = UINT64_MAX;
	assert_false(changes_names_back(names, 0, &path, &until));
	assert_int_equal(path.len, 99);
}

static size_t count(const struct prefixes *prefixes, const char *path)
{
	struct prefixes_walk walk = {.path = slice_of(path)};
	struct slice one;
	size_t n = 0;

	while (prefixes_next(prefixes, &walk, &one))
		n++;
	return n;
}

static void test_prefixes(void **state)
{
	scoped(prefixes) struct prefixes *prefixes = prefixes_new();

	prefixes_add(prefixes, slice_of("/a/b"));
	prefixes_add(prefixes, slice_of("/a/b"));
	assert_int_equal(count(prefixes, "/a/b/c"), 1);
	assert_int_equal(count(prefixes, "/a/bc"), 0);
	assert_int_equal(count(prefixes, "/a"), 0);
	prefixes_add(prefixes, slice_of("/"));
	assert_int_equal(count(prefixes, "/a/b"), 2);
	assert_int_equal(count(prefixes, "/"), 1);
	prefixes_remove(prefixes, slice_of("/a/b"));
	assert_true(prefixes_may_have(prefixes, slice_of("/a/b")));
	prefixes_remove(prefixes, slice_of("/a/b"));
	assert_false(prefixes_may_have(prefixes, slice_of("/a/b")));
	prefixes_add_all(prefixes, slice_of("/c/d/e"));
	assert_int_equal(count(prefixes, "/c/d/e/f"), 4);
	prefixes_remove_all(prefixes, slice_of("/c/d/e"));
	assert_int_equal(count(prefixes, "/c/d/e/f"), 1);
	assert_int_equal(count(prefixes, ""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
