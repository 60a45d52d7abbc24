/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a watch, lines out of bytes however they are cut, and ids of its stream. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/file_ring.h"
#include "server/file_watch.h"
#include "util/mem.h"

static bool has(const struct file_ring *ring, int64_t n, const char *text)
{
	const struct file_ring_entry *entry = file_ring_get(ring, n);

	return slice_is((struct slice){.p = entry->p, .len = entry->len}, text);
}

static void test_the_newest_are_kept(void **state)
{
	struct file_ring *ring = new0(struct file_ring);

	file_ring_init(ring);
	assert_int_equal(ring->last, 0);
	assert_int_equal(ring->first, 1);
	for (int n = 1; n <= FILE_RING_MAX + 10; n++) {
		scoped_mem char *text = mem_printf("%d", n);

		file_ring_add(ring, slice_of(text), n == 20);
		assert_int_equal(ring->last, n);
		assert_int_equal(ring->first, n <= FILE_RING_MAX ? 1 : n - FILE_RING_MAX + 1);
	}
	assert_true(has(ring, 11, "11"));
	assert_true(has(ring, FILE_RING_MAX + 10, "2058"));
	assert_true(file_ring_get(ring, 20)->is_gap);
	assert_false(file_ring_get(ring, 21)->is_gap);
	file_ring_done(ring);
	free(ring);
}

static void test_bytes_are_bounded(void **state)
{
	struct file_ring *ring = new0(struct file_ring);
	scoped_mem char *large = mem_zero(1, FILE_RING_BYTES);

	file_ring_init(ring);
	memset(large, 'x', FILE_RING_BYTES - 10);
	for (int n = 0; n < 10; n++)
		file_ring_add(ring, slice_of("a"), false);
	file_ring_add(ring, slice_of(large), false);
	assert_int_equal(ring->first, 1);
	file_ring_add(ring, slice_of("b"), false);
	assert_int_equal(ring->first, 2);
	file_ring_add(ring, slice_of(large), false);
	assert_int_equal(ring->first, 12);
	assert_int_equal(ring->last, 13);
	assert_true(has(ring, 12, "b"));
	assert_int_equal(ring->bytes, FILE_RING_BYTES - 9);
	file_ring_done(ring);
	assert_int_equal(ring->bytes, 0);
	free(ring);
}

/* However the bytes come, the lines are the same. */
static void take_lines(size_t at_once)
{
	scoped_mem char *middle = mem_zero(1, FILE_LINE_MAX + 2);
	scoped_str struct str all = {0}, got = {0};
	struct file_lines lines = {0};

	memset(middle, 'm', FILE_LINE_MAX + 1);
	str_printf(&all, "one\n\ntwo\n%s\nthree\n%.*s\nrest", middle, (int)FILE_LINE_MAX, middle);
	for (size_t i = 0; i < all.len; i += at_once) {
		size_t n = all.len - i < at_once ? all.len - i : at_once;
		struct slice bytes = {.p = all.p + i, .len = n};

		while (file_lines_next(&lines, &bytes)) {
			if (lines.is_too_long)
				str_puts(&got, "(long)|");
			else
				str_printf(&got,
					lines.line.len > 100 ? "%zu|" : "%zu:", lines.line.len);
			if (!lines.is_too_long && lines.line.len <= 100)
				str_printf(&got, "%s|", lines.line.len ? lines.line.p : "");
			file_lines_reset(&lines);
		}
	}
	assert_string_equal(got.p, "3:one|0:|3:two|(long)|5:three|65536|");
	assert_int_equal(lines.line.len, 4);
	str_done(&lines.line);
}

static void test_lines(void **state)
{
	for (size_t at_once = 1; at_once < 20; at_once++)
		take_lines(at_once);
	take_lines(FILE_LINE_MAX);
	take_lines(1u << 20);
}

static const struct {
	const char *text;
	int64_t n; /* -1: none */
} ids[] = {
	{"fw_1m8ppkm7f396vgm9.0", 0},
	{"fw_1m8ppkm7f396vgm9.17", 17},
	{"fw_1m8ppkm7f396vgm9.9223372036854775807", INT64_MAX},
	{"fw_1m8ppkm7f396vgm9.9223372036854775808", -1},
	{"fw_1m8ppkm7f396vgm9.", -1},
	{"fw_1m8ppkm7f396vgm9", -1},
	{"fw_1m8ppkm7f396vgm9.+1", -1},
	{"fw_1m8ppkm7f396vgm9. 1", -1},
	{"fw_1m8ppkm7f396vgm9.1 ", -1},
	{"fw_1m8ppkm7f396vgm9.1.2", -1},
	{"fw_1m8ppkm7f396vgm.1", -1},
	{"sb_1m8ppkm7f396vgm9.1", -1},
	{".", -1},
	{"1", -1},
};

static void test_ids(void **state)
{
	static const char with_nul[] = "fw_1m8ppkm7f396vgm9.1\0002";
	struct file_feed_at at;
	struct err err;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		int r = file_watch_read_id(slice_of(ids[i].text), &at, &err);

		if (r != (ids[i].n < 0 ? -EINVAL : 0) || (r == 0 && at.n != ids[i].n))
			fail_msg("%s: %d", ids[i].text, r);
		if (r == 0)
			assert_string_equal(at.id, "fw_1m8ppkm7f396vgm9");
	}
	assert_int_equal(
		file_watch_read_id(
			(struct slice){.p = with_nul, .len = sizeof(with_nul) - 1}, &at, &err),
		-EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_newest_are_kept),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
