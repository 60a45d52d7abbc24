/* SPDX-License-Identifier: Apache-2.0 */
/* What the store may hold but not know: sealed for one place, opened there and nowhere else. */
#include <errno.h>
#include <fcntl.h>
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

#include "server/secret_box.h"
#include "util/fdio.h"
#include "util/mem.h"

#define VALUE "sesame, open"

static char folder[] = "/tmp/cloche-secret-box-XXXXXX";
static char *key_path;

static int make_folder(void **state)
{
	scoped_mem char *inner = NULL;

	if (!mkdtemp(folder))
		return -1;
	inner = mem_printf("%s/server", folder);
	key_path = mem_printf("%s/secrets.key", inner);
	return mkdir(inner, 0700);
}

static int remove_folder(void **state)
{
	scoped_mem char *inner = mem_printf("%s/server", folder);

	(void)unlink(key_path);
	free(key_path);
	return rmdir(inner) < 0 || rmdir(folder) < 0 ? -1 : 0;
}

static struct secret_box *open_box(void)
{
	struct secret_box *box = NULL;
	struct err err = {0};

	if (secret_box_open(folder, &box, &err) < 0)
		fail_msg("%s", err.msg);
	return box;
}

static void seal(const struct secret_box *box, const char *label, struct str *out)
{
	struct err err = {0};

	assert_int_equal(secret_box_seal(box, slice_of(label), slice_of(VALUE), out, &err), 0);
}

static int unseal(const struct secret_box *box, const char *label, const char *sealed)
{
	scoped_str struct str out = {0};
	struct err err = {0};
	int r = secret_box_unseal(box, slice_of(label), slice_of(sealed), &out, &err);

	if (r == 0)
		assert_string_equal(out.p, VALUE);
	else
		assert_true(out.len == 0 && err.msg[0] && !strstr(err.msg, "sesame"));
	return r;
}

static void test_there_and_back(void **state)
{
	scoped(secret_box) struct secret_box *box = open_box(), *again = open_box();
	scoped_str struct str one = {0}, two = {0};
	struct stat st;

	seal(box, "a", &one);
	seal(box, "a", &two);
	assert_string_not_equal(one.p, two.p);
	assert_null(strstr(one.p, "sesame"));
	assert_int_equal(unseal(box, "a", one.p), 0);
	assert_int_equal(unseal(again, "a", two.p), 0);
	assert_int_equal(stat(key_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 32);
}

static void test_nowhere_else(void **state)
{
	scoped(secret_box) struct secret_box *box = open_box();
	scoped_str struct str sealed = {0};

	seal(box, "a", &sealed);
	assert_int_equal(unseal(box, "b", sealed.p), -EUCLEAN);
	assert_int_equal(unseal(box, "", sealed.p), -EUCLEAN);
	/* But for the last digit, before "==": it has bits that stand for nothing. */
	for (size_t i = 0; i + 3 < sealed.len; i++) {
		char was = sealed.p[i];

		sealed.p[i] = was == 'A' ? 'B' : 'A';
		assert_int_equal(unseal(box, "a", sealed.p), -EUCLEAN);
		sealed.p[i] = was;
	}
	for (size_t len = 0; len < sealed.len; len += 4) {
		scoped_mem char *part = mem_copy(sealed.p, len);

		assert_int_equal(unseal(box, "a", part), -EUCLEAN);
	}
	assert_int_equal(unseal(box, "a", sealed.p), 0);
}

static void test_another_key(void **state)
{
	scoped(secret_box) struct secret_box *box = open_box(), *other = NULL;
	scoped_str struct str sealed = {0};
	struct secret_box *none = NULL;
	struct err err = {0};

	seal(box, "a", &sealed);
	assert_int_equal(unlink(key_path), 0);
	other = open_box();
	assert_int_equal(unseal(other, "a", sealed.p), -EUCLEAN);
	assert_int_equal(truncate(key_path, 31), 0);
	assert_int_equal(secret_box_open(folder, &none, &err), -EUCLEAN);
	assert_int_equal(truncate(key_path, 33), 0);
	assert_int_equal(secret_box_open(folder, &none, &err), -EUCLEAN);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_nowhere_else),
		cmocka_unit_test(test_another_key),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
