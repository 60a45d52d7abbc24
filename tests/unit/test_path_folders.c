/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/path_folders.h"
#include "util/mem.h"
#include "util/path.h"

#define LIST_MAX 8

/* @ stands for the test's folder; the home is @/home. */
static const char *const folders[] = {"@/home/.local/bin", "@/home/.local/share/claude/versions",
	"@/home/.local/share/keyrings", "@/home/.nvm/v20/bin", "@/home/.nvm/v20/lib/npm",
	"@/home/.cargo/bin", "@/home/.rustup", "@/home/.pyenv/shims", "@/home/.pyenv/libexec",
	"@/home/bin", "@/home/project/tool", "@/state/records", "@/tools", "@/apart/x/y",
	"@/apart/data", "@/apart/.ssh"};
static const char *const files[] = {"@/home/.local/share/claude/versions/2",
	"@/home/.nvm/v20/lib/npm/cli.js", "@/home/project/tool/run", "@/home/loose",
	"@/apart/x/y/prog", "@/apart/.ssh/prog"};
static const char *const links[][2] = {
	{"../share/claude/versions/2", "@/home/.local/bin/claude"},
	{"../lib/npm/cli.js", "@/home/.nvm/v20/bin/npm"},
	{"/usr/bin/env", "@/home/.nvm/v20/bin/env"},
	{"../project/tool/run", "@/home/bin/run"},
	{"../loose", "@/home/bin/loose"}, /* its folder is the home */
	{"@/apart/x/y/prog", "@/tools/prog"},
	{"nowhere", "@/tools/dangling"},
	/* as what runs inside may leave them behind */
	{"@/apart/data/key", "@/tools/no-program"},
	{"@/apart/.ssh/prog", "@/tools/hidden"},
	{"/etc/passwd", "@/tools/of-the-system"},
	{"/proc/self/environ", "@/tools/of-the-kernel"},
	{"tools", "@/named"},
};

static const struct {
	const char *path;             /* the caller's PATH */
	const char *mounts[LIST_MAX]; /* HOST or HOST>GUEST */
	const char *env[LIST_MAX];
} cases[] = {
	{"/usr/bin:/bin:/opt/x", {NULL}, {NULL}},
	{"@/home/.local/bin:/usr/bin", {"@/home/.local/bin", "@/home/.local/share/claude"},
		{"PATH=@/home/.local/bin:"
		 "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	{"@/home/.nvm/v20/bin", {"@/home/.nvm/v20/bin", "@/home/.nvm/v20/lib"},
		{"PATH=@/home/.nvm/v20/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/"
		 "sbin:/bin"}},
	{"@/home/.cargo/bin", {"@/home/.rustup", "@/home/.cargo/bin"},
		{"RUSTUP_HOME=@/home/.rustup", "PATH=@/home/.cargo/bin:/usr/local/sbin:/usr/local/"
					       "bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	{"@/home/.pyenv/shims", {"@/home/.pyenv"},
		{"PYENV_ROOT=@/home/.pyenv", "PATH=@/home/.pyenv/shims:/usr/local/sbin:/usr/local/"
					     "bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	{"@/home/bin", {"@/home/bin", "@/home/project/tool"},
		{"PATH=@/home/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	{"@/tools:@/tools", {"@/tools", "@/apart/x/y"},
		{"PATH=@/tools:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/"
		 "bin"}},
	{"@/named", {"@/tools>@/named", "@/apart/x/y"},
		{"PATH=@/named:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	/* of the host view, but not in the usual PATH */
	{"/usr/bin:/usr/lib:/usr/lib", {NULL},
		{"PATH=/usr/lib:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	/* never shown: the home, what is above it, the state, nothing, relative ones, files */
	{"@/home:@:/:@/state:@/state/records::.:bin:@/home/loose:@/none", {NULL}, {NULL}},
};

static char *fill(const char *text, const char *dir)
{
	struct str out = {0};

	for (; *text; text++)
		if (*text == '@')
			str_puts(&out, dir);
		else
			str_putc(&out, *text);
	return str_take(&out);
}

static void make_tree(const char *dir)
{
	scoped_mem char *key = NULL;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		scoped_mem char *path = fill(folders[i], dir);

		assert_int_equal(path_make_all(path, 0755), 0);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		scoped_mem char *path = fill(files[i], dir);

		assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755)), 0);
	}
	key = fill("@/apart/data/key", dir);
	assert_int_equal(close(open(key, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		scoped_mem char *target = fill(links[i][0], dir), *path = fill(links[i][1], dir);

		assert_int_equal(symlink(target, path), 0);
	}
}

static void check_mounts(const struct spec *spec, const char *const *want, const char *dir)
{
	size_t n = 0;

	for (; want[n]; n++) {
		scoped_mem char *text = fill(want[n], dir), *rest = NULL;
		char *guest = strchr(text, '>');

		if (guest)
			*guest++ = '\0';
		assert_true(n < spec->n_mounts);
		assert_string_equal(spec->mounts[n].host, text);
		assert_string_equal(spec->mounts[n].guest, guest ? guest : text);
		assert_int_equal(spec->mounts[n].mode, SPEC_MOUNT_RO);
		assert_true(spec->mounts[n].internal);
	}
	assert_int_equal(spec->n_mounts, n);
}

static void check_case(size_t i, const char *dir)
{
	scoped(spec) struct spec *spec = spec_new();
	scoped(spec_exec) struct spec_exec *exec = spec_exec_new();
	scoped_mem char *path = fill(cases[i].path, dir), *home = fill("@/home", dir);
	scoped_mem char *state_dir = fill("@/state", dir);
	size_t n = 0;

	path_folders_add_from(spec, exec, path, home, state_dir);
	check_mounts(spec, cases[i].mounts, dir);
	for (; cases[i].env[n]; n++) {
		scoped_mem char *want = fill(cases[i].env[n], dir);

		assert_true(n < exec->env.n);
		assert_string_equal(exec->env.items[n], want);
	}
	assert_int_equal(exec->env.n, n);
}

static void test_cases(void **state)
{
	char made[] = "/tmp/cloche-path-XXXXXX";
	scoped_mem char *dir = NULL;

	assert_non_null(mkdtemp(made));
	dir = realpath(made, NULL);
	make_tree(dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(i, dir);
	assert_int_equal(path_remove_all(AT_FDCWD, made), 0);
}

/* What was named by -e or by a mount stays as it was named. */
static void test_named(void **state)
{
	char made[] = "/tmp/cloche-path-XXXXXX";
	scoped(spec) struct spec *spec = spec_new();
	scoped(spec_exec) struct spec_exec *exec = spec_exec_new();
	scoped_mem char *dir = NULL, *path = NULL;

	assert_non_null(mkdtemp(made));
	dir = realpath(made, NULL);
	make_tree(dir);
	path = fill("@/tools", dir);
	spec_add_mount(spec, dir, dir, SPEC_MOUNT_COW, false);
	spec_words_add(&exec->env, "PATH=/x");
	path_folders_add_from(spec, exec, path, "", "");
	assert_int_equal(spec->n_mounts, 1);
	assert_int_equal(exec->env.n, 1);
	assert_string_equal(exec->env.items[0], "PATH=/x");
	assert_int_equal(path_remove_all(AT_FDCWD, made), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_named),
	};

	return cmocka_run_group_tests_name("path_folders", tests, NULL, NULL);
}
