/* SPDX-License-Identifier: Apache-2.0 */
/* Whose call it is, by where its connection comes from. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "control/plane_socket.h"
#include "util/mem.h"
#include "util/scoped.h"

#define LEN(a)  (sizeof(a) / sizeof((a)[0]))
#define SANDBOX "sb_0123456789abcdef"
#define OTHER   "sb_fedcba9876543210"

static char folder[] = "/tmp/cloche-plane-XXXXXX";

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	scoped_mem char *inner = mem_printf("%s/inside", folder);

	return rmdir(inner) < 0 || rmdir(folder) < 0 ? -1 : 0;
}

static int listen_at(char name[ID_SIZE])
{
	struct err err = {0};
	int fd = plane_socket_listen(folder, name, &err);

	if (fd < 0)
		fail_msg("%s", err.msg);
	return fd;
}

static void test_caller(void **state)
{
	static const struct {
		const char *name; /* in the abstract namespace where is_abstract */
		bool is_abstract;
		int want;
	} cases[] = {
		{"cloche/inside/" SANDBOX "/0", true, 0},
		{"cloche/inside/" SANDBOX "/00000000deadbeef", true, 0},
		{"cloche/inside/" SANDBOX "/", true, 0},
		{"cloche/inside/" SANDBOX, true, -EINVAL},
		{"cloche/inside/" SANDBOX "0", true, -EINVAL},
		{"cloche/inside/sb_0123456789abcde/0", true, -EINVAL},
		{"cloche/inside/sb_0123456789abcdEf/0", true, -EINVAL},
		{"cloche/inside/ex_0123456789abcdef/0", true, -EINVAL},
		{"cloche/inside//0", true, -EINVAL},
		{"cloche/outside/" SANDBOX "/0", true, -EINVAL},
		{"", true, -EINVAL},
		{"cloche/inside/" SANDBOX "/0", false, -EINVAL},
		{"", false, -EINVAL},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct sockaddr_un from = {.sun_family = AF_UNIX};
		size_t n = strlen(cases[i].name);
		char got[ID_SIZE] = "";

		memcpy(from.sun_path + cases[i].is_abstract, cases[i].name, n);
		n += offsetof(struct sockaddr_un, sun_path) + cases[i].is_abstract;
		if (plane_socket_caller(&from, (socklen_t)n, got) != cases[i].want)
			fail_msg("case %zu: '%s'", i, cases[i].name);
		assert_string_equal(got, cases[i].want ? "" : SANDBOX);
		/* What stands behind its length is not looked at. */
		assert_int_equal(
			plane_socket_caller(&from, offsetof(struct sockaddr_un, sun_path), got),
			-EINVAL);
	}
}

/* What accept() says of the next connection. */
static void expect_from(int listener, const char *sandbox)
{
	struct sockaddr_un from;
	socklen_t len = sizeof(from);
	scoped_fd int fd = accept(listener, (struct sockaddr *)&from, &len);
	char got[ID_SIZE] = "";

	assert_true(fd >= 0);
	assert_int_equal(plane_socket_caller(&from, len, got), 0);
	assert_string_equal(got, sandbox);
}

static void test_connects_in_its_name(void **state)
{
	char name[ID_SIZE];
	scoped_fd int listener = listen_at(name), one = -1, two = -1, other = -1;

	one = plane_socket_connect(folder, SANDBOX);
	two = plane_socket_connect(folder, SANDBOX);
	other = plane_socket_connect(folder, OTHER);
	assert_true(one >= 0 && two >= 0 && other >= 0);
	expect_from(listener, SANDBOX);
	expect_from(listener, SANDBOX);
	expect_from(listener, OTHER);
	plane_socket_remove(folder, name);
	assert_int_equal(plane_socket_connect(folder, SANDBOX), -ECONNREFUSED);
}

/* One that was killed leaves its socket; another one goes on. */
static void test_any_that_runs(void **state)
{
	char dead[ID_SIZE], alive[ID_SIZE], next[ID_SIZE];
	int killed = listen_at(dead);
	scoped_fd int listener = listen_at(alive), again = -1, one = -1;
	scoped_mem char *path = mem_printf("%s/inside/%s", folder, dead);

	close(killed);
	one = plane_socket_connect(folder, SANDBOX);
	assert_true(one >= 0);
	expect_from(listener, SANDBOX);
	assert_int_equal(access(path, F_OK), 0);
	again = listen_at(next);
	assert_true(again >= 0);
	assert_int_equal(access(path, F_OK), -1);
	plane_socket_remove(folder, alive);
	plane_socket_remove(folder, next);
}

/* A folder that others may enter says nothing of who calls. */
static void test_folder_is_ones_own(void **state)
{
	scoped_mem char *inner = mem_printf("%s/inside", folder);
	char name[ID_SIZE];
	struct err err = {0};

	assert_int_equal(chmod(inner, 0711), 0);
	assert_int_equal(plane_socket_listen(folder, name, &err), -EPERM);
	assert_int_equal(chmod(inner, 0700), 0);
	assert_int_equal(plane_socket_connect("/nowhere", SANDBOX), -ECONNREFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caller),
		cmocka_unit_test(test_connects_in_its_name),
		cmocka_unit_test(test_any_that_runs),
		cmocka_unit_test(test_folder_is_ones_own),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
