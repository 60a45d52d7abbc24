/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "observer/resolve.h"
#include "util/clock.h"
#include "util/path.h"
#include "util/scoped.h"

/* The root of a small box: /real/f, /via to real, /up to ../../../real, /loop to itself, /real/out to /. */
static int make_root(char dir[])
{
	int fd;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(mkdirat(fd, "real", 0755), 0);
	close(openat(fd, "real/f", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlinkat("real", fd, "via"), 0);
	assert_int_equal(symlinkat("../../../real", fd, "up"), 0);
	assert_int_equal(symlinkat("loop", fd, "loop"), 0);
	assert_int_equal(symlinkat("/", fd, "real/out"), 0);
	return fd;
}

static void check(struct resolve *r, const char *prefix, const char *base, const char *text,
	bool follow, const char *want)
{
	scoped_str struct str out = {0}, whole = {0};
	struct decode_name name = {.base = slice_of(base),
		.text = slice_of(text),
		.follow = follow,
		.cut = base[0] != '/'};
	bool resolved = resolve_name(r, &name, &out);

	/* seen from the test, the root of the box is no root: what was followed begins with its folder */
	if (slice_starts(str_slice(&out), prefix))
		str_puts(&whole, out.p + strlen(prefix));
	else
		str_puts(&whole, out.p);
	if (whole.len == 0)
		str_putc(&whole, '/');
	assert_string_equal(whole.p, want);
	assert_int_equal(resolved, want[0] == '/' && !slice_starts(slice_of(want), "/proc/self/"));
}

static void test_names(void **state)
{
	static const struct {
		const char *base, *text;
		bool follow;
		const char *want;
	} cases[] = {
		{"/", "/real/x", false, "/real/x"},
		{"/real", "x", false, "/real/x"},
		{"/", "/via/x", false, "/real/x"},
		{"/via", "x", false, "/real/x"},
		{"/", "/up/x", false, "/real/x"},
		{"/", "/via/../x", false, "/x"},
		{"/", "/via", false, "/via"},
		{"/", "/via/", false, "/via"},
		{"/", "/via", true, "/real"},
		{"/", "/real/out/via/x", false, "/real/x"},
		{"/", "/none/./a//b/../x", false, "/none/a/x"},
		{"/", "/loop/x", false, "/loop/x"},
		{"/", "/real/.", false, "/real"},
		{"/real", "..", false, "/"},
		{"/", "/proc/self/cwd/x", false, "/proc/self/cwd/x"},
		{"tail/dir", "x", false, "tail/dir/x"},
		{"tail/dir", "/real/f", true, "/real/f"},
	};
	char dir[] = "/tmp/cloche-resolve-XXXXXX";
	scoped_fd int root = make_root(dir);
	scoped(resolve) struct resolve *r = resolve_new(root);

	for (int again = 0; again < 2; again++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			check(r, dir, cases[i].base, cases[i].text, cases[i].follow, cases[i].want);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

/* A folder that becomes a link is noticed when it is told that links changed. */
static void test_changes(void **state)
{
	char dir[] = "/tmp/cloche-resolve-XXXXXX";
	scoped_fd int root = make_root(dir);
	scoped(resolve) struct resolve *r = resolve_new(root);

	assert_int_equal(mkdirat(root, "d", 0755), 0);
	check(r, dir, "/", "/d/x", false, "/d/x");
	check(r, dir, "/", "/via/x", false, "/real/x");
	assert_int_equal(unlinkat(root, "d", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("real", root, "d"), 0);
	resolve_links_changed(r);
	check(r, dir, "/", "/d/x", false, "/real/x");
	assert_int_equal(unlinkat(root, "via", 0), 0);
	resolve_name_removed(r);
	check(r, dir, "/", "/via/x", false, "/via/x");
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

static void test_look(void **state)
{
	char dir[] = "/tmp/cloche-resolve-XXXXXX";
	scoped_fd int root = make_root(dir);
	scoped(resolve) struct resolve *r = resolve_new(root), *gone = resolve_new(-1);
	int64_t now = clock_mono_ns();

	assert_int_equal(
		resolve_look(r, slice_of("/real/f"), now - CLOCK_NS_PER_S, true), RESOLVE_NEWER);
	assert_int_equal(
		resolve_look(r, slice_of("/real/f"), now + CLOCK_NS_PER_S, false), RESOLVE_OLDER);
	assert_int_equal(resolve_look(r, slice_of("/real/none"), now, true), RESOLVE_ABSENT);
	assert_int_equal(resolve_look(gone, slice_of("/real/f"), now, true), RESOLVE_UNSEEN);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
		cmocka_unit_test(test_changes), cmocka_unit_test(test_look)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
