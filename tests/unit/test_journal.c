/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "manifest/journal.h"
#include "manifest/moves.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* ---- renames one after the other ---- */

static const struct {
	const char *moves;        /* "from>to from>to" */
	const char *path, *where; /* where NULL: at its place */
} moved[] = {
	{"a>b", "a", "b"},
	{"a>b", "b", NULL},
	{"a>b", "a/x", "b/x"},
	{"a>b", "ab", NULL},
	{"a>b b>c", "a/x", "c/x"},
	{"a>p b>a p>b", "a/x", "b/x"},
	{"a>p b>a p>b", "b", "a"},
	{"a/x>q a>b", "a/x", "q"},
	{"a/x>q a>b", "a/y", "b/y"},
	{"a/x>a/y a>b", "a/x", "b/y"},
	{"a>b b/x>q b>c", "a/x", "q"},
	{"a>b b/x>q b>c", "a/z", "c/z"},
	{"a/x>s/x s>t t/x>x", "a/x", "x"},
	{"a/x>s/x s>t", "s", "t"},
	{"a>b a>c", "a", "b"},       /* the second one is of something new */
	{"a>b a/x>c", "a/x", "b/x"}, /* likewise */
	{"a>b a>b", "a/x", "b/x"},
	{"a/b/c>d d/e>a/f a>g", "a/b/c/e", "g/f"},
	{"a/b/c>d d/e>a/f a>g", "a/b", "g/b"},
};

static void test_moves(void **state)
{
	for (size_t i = 0; i < N(moved); i++) {
		scoped(moves) struct moves *moves = moves_new();
		scoped_mem char *text = mem_dup(moved[i].moves), *found = NULL;
		char *rest = text;

		for (char *one = strtok_r(rest, " ", &rest); one;
			one = strtok_r(NULL, " ", &rest)) {
			char *to = strchr(one, '>');

			*to++ = '\0';
			moves_add(moves, one, to);
		}
		found = moves_find(moves, moved[i].path);
		assert_int_equal(found == NULL, moved[i].where == NULL);
		if (found)
			assert_string_equal(found, moved[i].where);
	}
}

static void test_many_moves(void **state)
{
	scoped(moves) struct moves *moves = moves_new();
	scoped_mem char *last = NULL;

	for (int i = 0; i < 20000; i++) {
		scoped_mem char *from = mem_printf("d/f%d", i), *to = mem_printf("e/g%d", i);

		moves_add(moves, from, to);
	}
	moves_add(moves, "e", "deep/er");
	last = moves_find(moves, "d/f19999");
	assert_string_equal(last, "deep/er/g19999");
}

/* ---- a journal that ends anywhere ---- */

static char dir[] = "/tmp/test_journal.XXXXXX";

static void write_all(struct journal *journal)
{
	struct journal_entry put = {.act = JOURNAL_APPLIED}, gone = {.act = JOURNAL_DISCARDED};

	char from[] = "old", to[] = "new";
	const struct rename done = {.from = from, .to = to, .inode = 7};

	memset(put.state, 'a', DIGEST_HEX_SIZE - 1);
	memset(put.sha256, 'b', DIGEST_HEX_SIZE - 1);
	memset(gone.state, 'c', DIGEST_HEX_SIZE - 1);
	gone.removed = true;
	assert_int_equal(journal_add(journal, 0, slice_of("put"), &put), 0);
	assert_int_equal(journal_add_rename(journal, 0, &done), 0);
	assert_int_equal(journal_add_temporary(journal, 0, "f/.cloche-tm_1"), 0);
	assert_int_equal(journal_add(journal, 1, slice_of("go\n\xffne"), &gone), 0);
	assert_int_equal(journal_add_tidy(journal, 0), 0);
}

struct found {
	bool put, moved, temporary, gone;
};

static struct found look(const struct journal *journal)
{
	scoped_mem char *now = journal_now(journal, 0, "old/x");
	const struct journal_entry *put = journal_find(journal, 0, slice_of("put"), false);

	if (put)
		assert_string_equal(journal_find_content(journal, 0, slice_of("put")), put->sha256);
	if (strcmp(now, "old/x") != 0)
		assert_string_equal(now, "new/x");
	return (struct found){.put = put,
		.moved = strcmp(now, "old/x") != 0,
		.temporary = journal_is_temporary(journal, 0, slice_of("f/.cloche-tm_1")),
		.gone = journal_find(journal, 1, slice_of("go\n\xffne"), true)};
}

static void drop(struct journal *journal)
{
	const struct rename *last = journal_last_rename(journal, 0);

	assert_string_equal(last->from, "old");
	assert_string_equal(last->to, "new");
	assert_int_equal(last->inode, 7);
	journal_drop_rename(journal, 0);
	assert_null(journal_last_rename(journal, 0));
	assert_false(look(journal).moved);
}

static void check_cut(const struct str *whole, size_t len)
{
	scoped(journal) struct journal *journal = NULL, *again = NULL;
	scoped_mem char *path = mem_printf("%s/journal.jsonl", dir);
	struct journal_entry more = {.act = JOURNAL_APPLIED, .state = "d"};
	struct found found;
	size_t n_lines = 0;
	bool is_dropped;

	for (size_t i = 0; i < len; i++)
		n_lines += whole->p[i] == '\n';
	n_lines -= n_lines > 0; /* the first one says that it was opened */
	is_dropped = n_lines >= 2 && len % 2 == 1;
	assert_int_equal(fdio_replace(AT_FDCWD, path, whole->p, len, 0600), 0);
	assert_int_equal(journal_open(dir, &journal, NULL), 0);
	found = look(journal);
	assert_int_equal(found.put, n_lines >= 1);
	assert_int_equal(found.moved, n_lines >= 2);
	if (is_dropped)
		drop(journal);
	assert_int_equal(found.temporary, n_lines >= 3 && n_lines < 5);
	assert_int_equal(found.gone, n_lines >= 4);
	assert_int_equal(journal_add(journal, 0, slice_of("more"), &more), 0);
	assert_int_equal(journal_open(dir, &again, NULL), 0);
	assert_non_null(journal_find(again, 0, slice_of("more"), false));
	assert_int_equal(look(again).gone, n_lines >= 4);
	assert_int_equal(look(again).moved, found.moved && !is_dropped);
}

static void test_torn_at_each_byte(void **state)
{
	scoped_mem char *path = mem_printf("%s/journal.jsonl", dir);
	scoped(journal) struct journal *journal = NULL;
	scoped_str struct str whole = {0};

	assert_int_equal(journal_open(dir, &journal, NULL), 0);
	write_all(journal);
	assert_int_equal(fdio_read_file(AT_FDCWD, path, 1 << 20, &whole), 0);
	for (size_t len = 0; len <= whole.len; len++)
		check_cut(&whole, len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_many_moves),
		cmocka_unit_test(test_torn_at_each_byte),
	};
	int r;

	if (!mkdtemp(dir))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)path_remove_all(AT_FDCWD, dir);
	return r;
}
