/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "supervisor/clip.h"
#include "util/mem.h"
#include "util/utf8.h"

/* A stream of n times unit, fed in pieces of `step` bytes. */
static void feed(struct clip *clip, const char *unit, size_t n, size_t step)
{
	scoped_str struct str all = {0};

	for (size_t i = 0; i < n; i++)
		str_puts(&all, unit);
	for (size_t at = 0; at < all.len; at += step)
		clip_add(clip, all.p + at, all.len - at < step ? all.len - at : step);
}

static size_t n_chars(const struct str *text)
{
	size_t n = 0;

	assert_true(utf8_is_valid(text->p, text->len));
	for (size_t i = 0; i < text->len; n++)
		i += utf8_len(text->p + i, text->len - i);
	return n;
}

static void test_lengths(void **state)
{
	static const struct {
		const char *unit;
		size_t n, want_chars;
		bool want_cut;
	} cases[] = {
		{"x", 0, 0, false},
		{"x", 4000, 4000, false},
		{"x", 4001, 4007, true},
		{"\xe2\x94\x80", 4000, 4000, false}, /* characters, not bytes */
		{"\xe2\x94\x80", 4001, 4007, true},
		{"\xf0\x9f\xa7\xaa", 4000, 4000, false},
		{"\xf0\x9f\xa7\xaa", 100000, 4007, true},
		{"x", 3000000, 4007, true},
	};
	static const size_t steps[] = {1, 7, 4096, 65536};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t s = cases[i].n > 100000; s < sizeof(steps) / sizeof(steps[0]); s++) {
			scoped_str struct str text = {0};
			struct clip clip;

			clip_init(&clip);
			feed(&clip, cases[i].unit, cases[i].n, steps[s]);
			assert_int_equal(clip_text(&clip, &text), cases[i].want_cut);
			if (text.len)
				assert_int_equal(n_chars(&text), cases[i].want_chars);
			assert_int_equal(clip.bytes, cases[i].n * strlen(cases[i].unit));
			clip_done(&clip);
		}
}

static void test_both_ends(void **state)
{
	scoped_str struct str text = {0};
	struct clip clip;

	clip_init(&clip);
	clip_add(&clip, "BEGIN", 5);
	feed(&clip, "m", 20000, 4096);
	clip_add(&clip, "END", 3);
	assert_true(clip_text(&clip, &text));
	assert_memory_equal(text.p, "BEGINm", 6);
	assert_non_null(strstr(text.p, "mm\n[...]\nmm"));
	assert_string_equal(text.p + text.len - 4, "mEND");
	clip_done(&clip);
}

/* Bytes that are no characters count as one each, and nothing is cut inside of them. */
static void test_not_utf8(void **state)
{
	scoped_str struct str text = {0};
	struct clip clip;

	clip_init(&clip);
	feed(&clip, "\xff", 5000, 1000);
	assert_true(clip_text(&clip, &text));
	assert_int_equal(text.len, 4007);
	clip_done(&clip);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_both_ends), cmocka_unit_test(test_not_utf8)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
