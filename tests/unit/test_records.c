/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/records.h"
#include "util/mem.h"
#include "util/path.h"

#define OTHER 4321

/* Oldest first, as ids sort. */
static const struct {
	const char *id;
	bool other; /* belongs to another user */
} made[] = {
	{"sb_0000000000000001", false},
	{"sb_00000000000000z2", false},
	{"sb_7k2m4q0c9d1x3f5h", false},
	{"sb_9000000000000000", true},
};

static const struct {
	const char *text, *want; /* NULL: refused, by this */
	const char *why;
} cases[] = {
	{"last", "sb_7k2m4q0c9d1x3f5h", NULL},
	{"sb_7k2m4q0c9d1x3f5h", "sb_7k2m4q0c9d1x3f5h", NULL},
	{"sb_7", "sb_7k2m4q0c9d1x3f5h", NULL},
	{"7k", "sb_7k2m4q0c9d1x3f5h", NULL},
	{"sb_00000000000000z", "sb_00000000000000z2", NULL},
	{"9", "sb_9000000000000000", NULL},
	{"0", NULL, "'0' stands for more than one sandbox (2): write more of the id"},
	{"sb_", NULL, "'sb_' stands for more than one sandbox (4): write more of the id"},
	{"", NULL, "there is no sandbox with the ID '' in @: `cloche ps --all` lists them"},
	{"8", NULL, "there is no sandbox with the ID '8' in @: `cloche ps --all` lists them"},
	{"../records/sb_7", NULL,
		"there is no sandbox with the ID '../records/sb_7' in @: `cloche ps --all` lists "
		"them"},
	{"sb_7k2m4q0c9d1x3f5h0", NULL,
		"there is no sandbox with the ID 'sb_7k2m4q0c9d1x3f5h0' in @: `cloche ps --all` "
		"lists them"},
};

static void check_case(const struct cli *cli, size_t i)
{
	char id[ID_SIZE] = "unset";
	struct err err = {0};
	int r = records_resolve(cli, cases[i].text, id, &err);
	const char *at;

	if (cases[i].want) {
		assert_string_equal(err.msg, "");
		assert_int_equal(r, 0);
		assert_string_equal(id, cases[i].want);
		return;
	}
	assert_true(r < 0);
	assert_string_equal(id, "unset");
	at = strchr(cases[i].why, '@');
	if (!at) {
		assert_string_equal(err.msg, cases[i].why);
		return;
	}
	assert_memory_equal(err.msg, cases[i].why, (size_t)(at - cases[i].why));
	assert_non_null(strstr(err.msg, at + 1));
}

static void test_resolve(void **state)
{
	char dir[] = "/tmp/cloche-records-XXXXXX";
	struct cli cli = {.state_dir = dir, .uid = geteuid()};
	scoped_mem char *stray = NULL;

	assert_non_null(mkdtemp(dir));
	stray = mem_printf("%s/records/sb_7stray", dir);
	assert_int_equal(path_make_all(stray, 0700), 0); /* no id: never found */
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		scoped_mem char *path = mem_printf("%s/records/%s", dir, made[i].id);

		assert_int_equal(path_make_all(path, 0700), 0);
		if (made[i].other && geteuid() == 0)
			assert_int_equal(chown(path, OTHER, OTHER), 0);
		if (made[i].other && geteuid() != 0)
			assert_int_equal(rmdir(path), 0);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (geteuid() == 0 || (i != 5 && i != 7)) /* those need another user's record */
			check_case(&cli, i);
	cli.uid = OTHER + 1;
	{
		char id[ID_SIZE];
		struct err err = {0};

		assert_int_equal(records_resolve(&cli, "last", id, &err), -ENOENT);
		assert_non_null(strstr(err.msg, "you have no sandbox yet"));
	}
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

static void test_no_state(void **state)
{
	char none[] = "/tmp/cloche-no-such-state";
	struct cli cli = {.state_dir = none};
	struct record_list list;
	char id[ID_SIZE];

	assert_int_equal(records_list(&cli, &list, NULL), 0);
	assert_int_equal(list.n, 0);
	assert_int_equal(records_resolve(&cli, "sb_1", id, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_no_state),
	};

	return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
