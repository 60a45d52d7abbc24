/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line knows of a control plane before it has asked it anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "remote/address.h"
#include "remote/exec_output.h"
#include "remote/remote_verbs.h"
#include "remote/safe_text.h"
#include "util/mem.h"
#include "util/scoped.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *text, *base, *socket; /* base NULL: refused */
	bool is_near, is_open;
} addresses[] = {
	{"https://cloche.example.org", "https://cloche.example.org", NULL, false, false},
	{"https://cloche.example.org/", "https://cloche.example.org", NULL, false, false},
	{"https://Cloche.example.org:7410/a/b/", "https://cloche.example.org:7410/a/b", NULL, false,
		false},
	{"http://cloche.example.org", "http://cloche.example.org", NULL, false, true},
	{"http://cloche.internal", "http://cloche.internal", NULL, false, false},
	{"http://127.0.0.1:7410", "http://127.0.0.1:7410", NULL, true, false},
	{"http://127.9.9.9", "http://127.9.9.9", NULL, true, false},
	{"http://2130706433:7410", "http://127.0.0.1:7410", NULL, true, false},
	{"http://[::1]:7410", "http://[::1]:7410", NULL, true, false},
	{"http://localhost:7410", "http://localhost:7410", NULL, true, false},
	{"http://128.0.0.1", "http://128.0.0.1", NULL, false, true},
	{"unix:///run/cloche/cloche.sock", "http://localhost", "/run/cloche/cloche.sock", true,
		false},
	{"unix://run/cloche.sock"},
	{"unix://"},
	{"/run/cloche/cloche.sock"},
	{"127.0.0.1:7410"},
	{"localhost:7410"},
	{"http://user@cloche.example.org"},
	{"http://user:word@cloche.example.org"},
	{"http://cloche.example.org?x=y"},
	{"http://cloche.example.org/a?x=y"},
	{"http://cloche.example.org/#x"},
	{"ftp://cloche.example.org"},
	{"file:///etc/passwd"},
	{"http://"},
	{"http://a b"},
	{""},
};

static void test_addresses(void **state)
{
	for (size_t i = 0; i < N(addresses); i++) {
		struct address address = {0};
		struct err err = {0};
		int r = address_read(addresses[i].text, &address, &err);

		if (!addresses[i].base) {
			assert_int_equal(r, -EINVAL);
			assert_non_null(strstr(err.msg, "want "));
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(address.shown, addresses[i].text);
		assert_string_equal(address.base, addresses[i].base);
		assert_string_equal(
			address.socket ? address.socket : "", addresses[i].socket ?: "");
		assert_int_equal(address.is_near, addresses[i].is_near);
		assert_int_equal(address.is_open, addresses[i].is_open);
		address_done(&address);
	}
}

static void test_parts(void **state)
{
	scoped_str struct str out = {0};

	address_add_part(&out, "a-Z_0.9~/?&=+ %\xc3\xa9");
	assert_string_equal(out.p, "a-Z_0.9~%2F%3F%26%3D%2B%20%25%C3%A9");
}

static void test_each_verb_has_a_row(void **state)
{
	for (size_t i = 0; verb_table[i]; i++)
		if (!remote_verbs_knows(verb_table[i]))
			fail_msg("remote_verbs.c says nothing of '%s'", verb_table[i]->name);
}

static void test_safe_text(void **state)
{
	static const struct {
		const char *text, *plain, *colored;
	} cases[] = {
		{"a\tb\n", "a\tb\n", "a\tb\n"},
		{"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", "\x1b[31mred\x1b[0m"},
		{"\x1b[1;31mx", "\\x1b[1;31mx", "\x1b[1;31mx"},
		{"\x1b[2Jx", "\\x1b[2Jx", "\\x1b[2Jx"},
		{"\x1b]0;title\a", "\\x1b]0;title\\x07", "\\x1b]0;title\\x07"},
		{"\x1b[123456789m", "\\x1b[123456789m", "\\x1b[123456789m"},
		{"\x1b[31", "\\x1b[31", "\\x1b[31"},
		{"a\rb\xe2\x80\xae", "a\\rb\\u202e", "a\\rb\\u202e"},
		{"\xff", "\\xff", "\\xff"},
		{"", "", ""},
	};

	for (size_t i = 0; i < N(cases); i++) {
		scoped_str struct str plain = {0}, colored = {0};

		safe_text_add(&plain, slice_of(cases[i].text), false);
		safe_text_add(&colored, slice_of(cases[i].text), true);
		assert_string_equal(plain.p ? plain.p : "", cases[i].plain);
		assert_string_equal(colored.p ? colored.p : "", cases[i].colored);
	}
}

/* Instead of stdout, while it lasts: what was written there. */
static int saved;

static int divert(void)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	saved = dup(STDOUT_FILENO);
	assert_int_equal(dup2(fds[1], STDOUT_FILENO), STDOUT_FILENO);
	close(fds[1]);
	return fds[0];
}

static void restore(int fd, char *got, size_t size)
{
	ssize_t n;

	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	close(saved);
	n = read(fd, got, size - 1);
	close(fd);
	got[n > 0 ? n : 0] = '\0';
}

static void test_output(void **state)
{
	static const struct {
		const char *json;
		int r;
	} cases[] = {
		{"{\"data\":\"one\"}", 0},
		{"{\"data\":\"?\",\"data_b64\":\"/w==\"}", 0},
		{"{\"data\":\"\\u0000\"}", 0},
		{"{\"data\":1}", -EBADMSG},
		{"{\"data\":\"x\",\"data_b64\":\"!\"}", -EBADMSG},
		{"[]", -EBADMSG},
		{"", -EBADMSG},
	};
	struct exec_output output = {0};
	char got[64];
	int fd = divert();

	for (size_t i = 0; i < N(cases); i++)
		if (exec_output_take(&output, STDOUT_FILENO, slice_of(cases[i].json)) != cases[i].r)
			output.errors[2] = -EIO;
	restore(fd, got, sizeof(got));
	assert_memory_equal(got, "one\xff\0", 6);
	assert_int_equal(output.n_passed[STDOUT_FILENO], 5);
	assert_false(exec_output_is_lost(&output));
}

/* What came before a connection was lost is not told again; what is not in the row is only counted. */
static void test_the_rest_of_it(void **state)
{
	static const struct {
		const char *row, *want;
	} cases[] = {
		{"{\"stdout\":\"onetwo\",\"stdout_bytes\":6,\"stderr_bytes\":0}", "two"},
		{"{\"stdout\":\"one\",\"stdout_bytes\":3}", ""},
		{"{\"stdout\":\"o[...]o\",\"stdout_bytes\":9000}", ""},
		{"{\"stdout\":null,\"stdout_bytes\":null}", ""},
		{"{}", ""},
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct exec_output output = {.n_passed = {0, 3, 0}};
		json_t *row = json_loads(cases[i].row, 0, NULL);
		char got[64];
		int fd = divert();

		exec_output_complete(&output, row);
		restore(fd, got, sizeof(got));
		assert_string_equal(got, cases[i].want);
		json_decref(row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_parts), cmocka_unit_test(test_each_verb_has_a_row),
		cmocka_unit_test(test_safe_text), cmocka_unit_test(test_output),
		cmocka_unit_test(test_the_rest_of_it)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
