/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "util/aside.h"
#include "util/clock.h"
#include "util/der.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/id.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/utf8.h"

static void test_err(void **state)
{
	struct err err = {0};
	int r = err_set(&err, -ENOENT, "open '%s': %m", "a");

	assert_int_equal(r, -ENOENT);
	assert_int_equal(err_wrap(&err, r, "start"), -ENOENT);
	assert_string_equal(err.msg, "start: open 'a': No such file or directory");
}

static void test_aside(void **state)
{
	char dir[] = "/tmp/cloche-aside-XXXXXX";
	scoped_mem char *trash = NULL, *folder = NULL, *taken = NULL, *path = NULL, *want = NULL;

	assert_non_null(mkdtemp(dir));
	trash = mem_printf("%s/trash", dir);
	folder = mem_printf("%s/folder", dir);
	taken = mem_printf("%s/x", trash);
	want = mem_printf("%s/x.1", trash);
	assert_int_equal(path_make_all(trash, 0700) | mkdir(folder, 0700), 0);
	assert_int_equal(close(open(taken, O_WRONLY | O_CREAT, 0600)), 0);
	assert_int_equal(aside_move(trash, folder, "x", &path), 0);
	assert_string_equal(path, want);
	assert_int_equal(aside_empty(trash), 0);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

static void test_utf8(void **state)
{
	static const struct {
		const char *bytes;
		size_t len, want;
	} cases[] = {
		{"a", 1, 1},
		{"\xc3\xa9", 2, 2},
		{"\xc3", 1, 0},
		{"\xc0\x80", 2, 0},         /* overlong */
		{"\xed\xa0\x80", 3, 0},     /* surrogate */
		{"\xf4\x90\x80\x80", 4, 0}, /* past U+10FFFF */
		{"\xf0\x9f\xa7\xaa", 4, 4},
		{"\xf0\x9f\xa7", 3, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(utf8_len(cases[i].bytes, cases[i].len), cases[i].want);
	assert_int_equal(utf8_cut("ab\xe2\x94\x80", 5, 4), 2);
	assert_int_equal(utf8_cut("ab\xe2\x94\x80", 5, 5), 5);
	assert_int_equal(utf8_next_start("\xe2\x94\x80z", 4, 1), 3);
	assert_int_equal(utf8_whole_len("ab\xe2\x94", 4), 2);
	assert_int_equal(utf8_whole_len("ab\xe2\x94\x80", 5), 5);
	assert_int_equal(utf8_whole_len("\xc3", 1), 0);
	assert_int_equal(utf8_whole_len("\x94\x80", 2), 2);
	assert_int_equal(utf8_whole_len("", 0), 0);
}

static void test_path(void **state)
{
	static const struct {
		const char *base, *path, *want;
	} cases[] = {
		{"/a/b", "c", "/a/b/c"},
		{"/a/b", "../c", "/a/c"},
		{"/a/b", "/x//./y/", "/x/y"},
		{"/", "..", "/"},
		{"/a", "../../..", "/"},
		{"/a", "", "/a"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped_str struct str out = {0};

		path_resolve(slice_of(cases[i].base), slice_of(cases[i].path), &out);
		assert_string_equal(out.p, cases[i].want);
	}
	assert_true(path_is_beneath(slice_of("/a/b"), slice_of("/a")));
	assert_false(path_is_beneath(slice_of("/ab"), slice_of("/a")));
	assert_true(path_is_beneath(slice_of("/ab"), slice_of("/")));
}

/* A folder in a folder, as deep as is asked for; the innermost holds a file. */
static void make_deep(int fd, int depth)
{
	fd = dup(fd);
	for (int i = 0; i < depth; i++) {
		int below;

		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		below = openat(fd, "d", O_RDONLY | O_DIRECTORY);
		assert_true(below >= 0);
		close(fd);
		fd = below;
	}
	close(openat(fd, "f", O_WRONLY | O_CREAT, 0600));
	close(fd);
}

/* What was judged by its path is the same when it is opened, or it is not opened. */
static void test_open_judged(void **state)
{
	char dir[] = "/tmp/cloche-util.XXXXXX", path[64], moved[64], file[80];
	int fd;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/a", dir);
	(void)snprintf(moved, sizeof(moved), "%s/b", dir);
	(void)snprintf(file, sizeof(file), "%s/f", path);
	assert_int_equal(mkdir(path, 0700), 0);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(close(fd), 0);
	fd = path_open_judged(file, O_RDONLY);
	assert_true(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	assert_int_equal(close(fd), 0);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(path_open_judged(path, O_RDONLY | O_DIRECTORY), -ENOENT);
	assert_int_equal(symlink("b", path), 0);
	assert_int_equal(path_open_judged(path, O_RDONLY | O_DIRECTORY), -ELOOP);
	assert_int_equal(path_open_judged(file, O_RDONLY), -ELOOP);
	assert_int_equal(path_open_judged("/proc/self/fd/0", O_PATH), -ELOOP);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

static void test_remove_deep(void **state)
{
	char path[] = "/tmp/cloche-test-XXXXXX";
	struct rlimit before, few;
	int fd;

	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY);
	make_deep(fd, 300);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(mkdirat(fd, "d/.deep-0", 0700), 0); /* names that a removal may want */
	close(openat(fd, "d/.deep-0/x", O_WRONLY | O_CREAT, 0600));
	close(openat(fd, "d/.deep-1", O_WRONLY | O_CREAT, 0600));
	few = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(path_remove_all(fd, "d"), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(faccessat(fd, "d", F_OK, 0), -1);
	assert_int_equal(path_remove_all(fd, "d"), 0);
	assert_int_equal(path_remove_all(AT_FDCWD, path), 0);
	assert_int_equal(access(path, F_OK), -1);
	close(fd);
}

/* What cannot be removed stays, and keeps nothing else from going, however deep that lies. */
static void test_remove_all_but(void **state)
{
	char path[] = "/tmp/cloche-test-XXXXXX";
	scoped_str struct str deep = {0};
	int fd;

	if (geteuid() != 0) {
		print_message("skipped: only root can be another user for a while\n");
		skip();
	}
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(fchmod(fd, 0777), 0);
	make_deep(fd, 60);
	for (int i = 0; i < 60; i++) {
		str_puts(&deep, i ? "/d" : "d");
		assert_int_equal(fchmodat(fd, deep.p, 0777, 0), 0);
	}
	assert_int_equal(mkdirat(fd, "d/s", 0700), 0);
	close(openat(fd, "d/s/f", O_WRONLY | O_CREAT, 0600));
	assert_int_equal(fchmodat(fd, "d/s", 01777, 0), 0); /* only an owner removes there */
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(path_remove_all(fd, "d"), -EPERM);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(unlinkat(fd, "d/s/f", 0), 0);
	assert_int_equal(unlinkat(fd, "d/s", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(fd, "d", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(path), 0);
	close(fd);
}

/* The first descriptor that is free is 0 where a caller had no standard input. */
static void test_remove_without_stdin(void **state)
{
	char path[] = "/tmp/cloche-test-XXXXXX";
	int input = dup(0);

	assert_non_null(mkdtemp(path));
	close(0);
	assert_int_equal(path_remove_all(AT_FDCWD, path), 0);
	if (input >= 0) {
		assert_int_equal(dup2(input, 0), 0);
		close(input);
	}
	assert_int_equal(access(path, F_OK), -1);
}

static void test_map(void **state)
{
	scoped(map) struct map *map = map_new();
	struct slice key;
	void *value;
	char text[16];
	size_t n = 0;

	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "k%d", i);
		*map_slot(map, slice_of(text)) = (void *)(intptr_t)(i + 1);
	}
	for (int i = 0; i < 1000; i += 2) {
		snprintf(text, sizeof(text), "k%d", i);
		assert_ptr_equal(map_remove(map, slice_of(text)), (void *)(intptr_t)(i + 1));
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "k%d", i);
		assert_ptr_equal(
			map_find(map, slice_of(text)), (void *)(intptr_t)(i % 2 ? i + 1 : 0));
	}
	for (size_t i = 0; map_next(map, &i, &key, &value);)
		n++;
	assert_int_equal(n, 500);
	assert_int_equal(map_len(map), 500);
}

static void test_clock(void **state)
{
	char text[CLOCK_TEXT_LEN];
	int64_t ms;

	clock_format(1764425402007, text);
	assert_string_equal(text, "2025-11-29T14:10:02.007Z");
	assert_int_equal(clock_parse(text, &ms), 0);
	assert_int_equal(ms, 1764425402007);
	assert_int_equal(clock_parse("2025-11-29 14:10", &ms), -EINVAL);
	assert_int_equal(clock_parse_duration("1.5m", &ms), 0);
	assert_int_equal(ms, 90000);
	assert_int_equal(clock_parse_duration("-3s", &ms), -EINVAL);
	assert_int_equal(clock_parse_duration("3 parsecs", &ms), -EINVAL);
}

static void test_digest_and_id(void **state)
{
	char hex[DIGEST_HEX_SIZE], id[ID_SIZE];

	digest_of("abc", 3, hex);
	assert_string_equal(
		hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	id_new("sb", id);
	assert_true(id_is_valid("sb", id));
	assert_false(id_is_valid("ex", id));
	assert_false(id_is_valid("sb", "sb_../../etc/passwd"));
}

/* What a value says is one value's, whatever is in it. */
static void test_log_fields(void **state)
{
	char dir[] = "/tmp/cloche-util.XXXXXX", path[64], line[256] = "";
	const struct log_field fields[] = {{"a", "plain/x", 0}, {"b", "x status=200", 0},
		{"c", "q\"\\\n", 0}, {"d", "", 0}, {"n", NULL, -1}};
	static const char want[] = "cloche: m a=plain/x b=\"x status=200\" c=\"q\\\"\\\\\\n\" "
				   "d=\"\" n=-1\n{\"at\":\"20";
	int saved = dup(STDERR_FILENO), fd;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_true(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	log_fields("m", fields, 5);
	log_set_json(true);
	log_fields("m", fields, 0);
	log_set_json(false);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	assert_true(pread(fd, line, sizeof(line) - 1, 0) > 0);
	assert_memory_equal(line, want, strlen(want));
	close(fd);
	close(saved);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

static void test_escape(void **state)
{
	scoped_str struct str out = {0};

	log_add_escaped(&out, (struct slice){.p = "a\x1b[2J\n\xff\xe2\x80\xae\xc3\xa9", .len = 12});
	assert_string_equal(out.p, "a\\x1b[2J\\n\\xff\\u202e\xc3\xa9");
}

static void test_der(void **state)
{
	static const struct {
		size_t len;
		const char *head;
	} rows[] = {{0, "\x30\x00"}, {127, "\x30\x7f"}, {128, "\x30\x81\x80"},
		{255, "\x30\x81\xff"}, {256, "\x30\x82\x01\x00"}, {65535, "\x30\x82\xff\xff"},
		{65536, "\x30\x83\x01\x00\x00"}};
	scoped_str struct str out = {0}, in = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		str_reset(&out);
		der_head(&out, DER_SEQUENCE, rows[i].len);
		assert_int_equal(out.len, der_head_len(rows[i].len));
		assert_memory_equal(out.p, rows[i].head, out.len);
	}
	str_reset(&out);
	der_put(&in, DER_UTF8, slice_of("hi"));
	der_wrap(&out, DER_SET, &in);
	assert_int_equal(in.len, 0);
	assert_int_equal(out.len, 6);
	assert_memory_equal(out.p, "\x31\x04\x0c\x02hi", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_der),
		cmocka_unit_test(test_err),
		cmocka_unit_test(test_aside),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_open_judged),
		cmocka_unit_test(test_remove_deep),
		cmocka_unit_test(test_remove_all_but),
		cmocka_unit_test(test_remove_without_stdin),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_digest_and_id),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_log_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
