/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "manifest/git_text.h"
#include "util/mem.h"
#include "util/scoped.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define A40      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *text, *id, *name; /* both NULL: refused */
} refs[] = {
	{"ref: refs/heads/main\n", "", "refs/heads/main"},
	{"ref: refs/heads/main", "", "refs/heads/main"},
	{"ref: refs/heads/a/b.c-d_e@f", "", "refs/heads/a/b.c-d_e@f"},
	{"ref: refs/heads/\xc3\xbc\n", "", "refs/heads/\xc3\xbc"},
	{A40 "\n", A40, ""},
	{B64, B64, ""},
	{""},
	{"\n"},
	{A40 "\n\n"},
	{A40 " "},
	{A40 "a"},
	{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
	{"gitdir: /etc\n"},
	{"ref:refs/heads/main"},
	{"ref:  refs/heads/main"},
	{"ref: HEAD"},
	{"ref: refs"},
	{"ref: refs/"},
	{"ref: refs/heads/"},
	{"ref: refs//main"},
	{"ref: refs/heads/../../config"},
	{"ref: refs/heads/.hidden"},
	{"ref: refs/heads/-o"},
	{"ref: refs/heads/a.lock/b"},
	{"ref: refs/heads/a."},
	{"ref: refs/heads/a b"},
	{"ref: refs/heads/a\nb"},
	{"ref: refs/heads/a\tb"},
	{"ref: refs/heads/a:b"},
	{"ref: refs/heads/a^"},
	{"ref: refs/heads/a~1"},
	{"ref: refs/heads/a*"},
	{"ref: refs/heads/a?"},
	{"ref: refs/heads/[a"},
	{"ref: refs/heads/a\\b"},
	{"ref: refs/heads/a@{1}"},
	{"ref: refs/heads/\x7f"},
	{"ref: ../refs/heads/main"},
	{"ref: /refs/heads/main"},
};

static void test_refs(void **state)
{
	for (size_t i = 0; i < N(refs); i++) {
		struct git_text_ref ref = {.name = "kept"};
		int r = git_text_parse_ref(slice_of(refs[i].text), &ref);

		if (!refs[i].id) {
			assert_int_equal(r, -EBADMSG);
			assert_string_equal(ref.name, "kept");
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(ref.id, refs[i].id);
		assert_string_equal(ref.name, refs[i].name);
	}
}

static void test_long_name(void **state)
{
	scoped_mem char *longest = mem_printf("refs/%0*d", GIT_TEXT_NAME_MAX - 5, 0);
	scoped_mem char *more = mem_printf("%s0", longest);

	assert_int_equal(strlen(longest), GIT_TEXT_NAME_MAX);
	assert_true(git_text_is_ref_name(slice_of(longest)));
	assert_false(git_text_is_ref_name(slice_of(more)));
}

static void test_nul(void **state)
{
	static const char text[] = "ref: refs/heads/a\0b";
	struct git_text_ref ref;

	assert_int_equal(
		git_text_parse_ref((struct slice){.p = text, .len = sizeof(text) - 1}, &ref),
		-EBADMSG);
}

static const struct {
	const char *text, *name;
	int r;
} packed[] = {
	{"# pack-refs with: peeled\n" A40 " refs/heads/main\n", "refs/heads/main", 0},
	{A40 " refs/heads/main", "refs/heads/main", 0},
	{A40 " refs/tags/v1\n^" A40 "\n" A40 " refs/heads/x\n", "refs/heads/x", 0},
	{"", "refs/heads/main", -ENOENT},
	{A40 " refs/heads/main2\n", "refs/heads/main", -ENOENT},
	{A40 " x refs/heads/main\n", "refs/heads/main", -ENOENT},
	{A40 "  refs/heads/main\n", "refs/heads/main", -ENOENT},
	{"zz refs/heads/main\n", "refs/heads/main", -EBADMSG},
	{" refs/heads/main\n", "refs/heads/main", -EBADMSG},
	{A40 "a refs/heads/main\n", "refs/heads/main", -EBADMSG},
};

static void test_packed(void **state)
{
	for (size_t i = 0; i < N(packed); i++) {
		char id[GIT_TEXT_ID_SIZE] = "kept";

		assert_int_equal(git_text_find_packed(slice_of(packed[i].text), packed[i].name, id),
			packed[i].r);
		assert_string_equal(id, packed[i].r == 0 ? A40 : "kept");
	}
}

static const struct {
	const char *name;
	bool is_pack, is_one;
} files[] = {
	{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, true},
	{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, false},
	{A40, false, false},
	{"..aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, false},
	{"tmp_obj_aaaaaa", false, false},
	{"pack-" A40 ".pack", true, true},
	{"pack-" B64 ".pack", true, true},
	{"pack-" A40 ".idx", true, false},
	{"pack-" A40 ".pack.pack", true, false},
	{"pack-" A40, true, false},
	{"pack-.pack", true, false},
	{"pack.pack", true, false},
	{"multi-pack-index", true, false},
	{"pack-../../aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.pack", true, false},
};

static void test_files(void **state)
{
	for (size_t i = 0; i < N(files); i++)
		assert_int_equal(
			git_text_is_object_file(files[i].name, files[i].is_pack), files[i].is_one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refs),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
