/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of files on their way to a webhook: which it hears of, how many at once, how often. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/file_batch.h"
#include "server/file_source.h"
#include "server/webhook_paths.h"
#include "util/mem.h"

/* ---- paths ---- */

static struct webhook_paths paths_of(const char *json)
{
	json_t *list = json_loads(json, 0, NULL);
	struct webhook_paths paths;
	struct err err;

	assert_int_equal(webhook_paths_read(list, &paths, &err), 0);
	json_decref(list);
	return paths;
}

static const char *const bad[] = {"[]", "\"/a\"", "{}", "[1]", "[\"\"]", "[\"a\"]", "[\"a/**\"]",
	"[\"/a\", \"b\"]", "[\"/a/../b\"]", "[\"/..\"]", "[\"/a/.\"]", "[\"/./a\"]",
	"[\"/a\\u0000b\"]", "[\"/1\",\"/2\",\"/3\",\"/4\",\"/5\"]"};

static void test_bad_paths(void **state)
{
	scoped_mem char *text = mem_zero(1, 1100);
	struct webhook_paths paths;
	struct err err;
	json_t *list;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		list = json_loads(bad[i], JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
		if (webhook_paths_read(list, &paths, &err) != -EINVAL || paths.n != 0)
			fail_msg("%s", bad[i]);
		json_decref(list);
	}
	assert_int_equal(webhook_paths_read(NULL, &paths, &err), 0);
	assert_int_equal(paths.n, 0);
	memset(text, '/', 1001);
	list = json_pack("[s]", text);
	assert_int_equal(webhook_paths_read(list, &paths, &err), -EINVAL);
	json_decref(list);
}

static const struct {
	const char *paths, *path;
	bool has;
} rows[] = {
	{"[\"/workspace/**\"]", "/workspace", true},
	{"[\"/workspace/**\"]", "/workspace/a", true},
	{"[\"/workspace/**\"]", "/workspace/a/b/c", true},
	{"[\"/workspace/**\"]", "/workspace2", false},
	{"[\"/workspace/**\"]", "/etc/workspace/a", false},
	{"[\"/workspace\"]", "/workspace", true},
	{"[\"/workspace\"]", "/workspace/a/b", true},
	{"[\"/workspace/\"]", "/workspace/a/b", true},
	{"[\"/workspace\"]", "/workspace2/a", false},
	{"[\"/workspace/*.py\"]", "/workspace/a.py", true},
	{"[\"/workspace/*.py\"]", "/workspace/a.py/b", false},
	{"[\"/workspace/*.py\"]", "/workspace/d/a.py", false},
	{"[\"/workspace/**/*.py\"]", "/workspace/d/e/a.py", true},
	{"[\"/workspace/**/*.py\"]", "/workspace/a.py", true},
	{"[\"/a\", \"/b/*\"]", "/b/c", true},
	{"[\"/a\", \"/b/*\"]", "/c", false},
	{"[\"/\"]", "/any/thing", true},
	{"[\"/**\"]", "/any/thing", true},
	{"[\"/a\\\\*\"]", "/a*", true},
	{"[\"/a\\\\*\"]", "/ab", false},
};

static void test_which_paths(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct webhook_paths paths = paths_of(rows[i].paths);

		if (webhook_paths_have(&paths, slice_of(rows[i].path)) != rows[i].has)
			fail_msg("%s %s", rows[i].paths, rows[i].path);
		webhook_paths_done(&paths);
	}
}

static const struct {
	const char *paths, *bases;
} covers[] = {
	{"[\"/workspace/**\"]", "/workspace "},
	{"[\"//workspace//src/\"]", "/workspace/src "},
	{"[\"/workspace/**/*.py\"]", "/workspace "},
	{"[\"/workspace/s?c/x\"]", "/workspace "},
	{"[\"/*\"]", "/ "},
	{"[\"/\", \"/etc/**\"]", "/ "},
	{"[\"/etc/x\", \"/workspace/**\", \"/etc/**\"]", "/workspace /etc "},
	{"[\"/a\", \"/a\", \"/a/**\"]", "/a "},
	{"[\"/a\", \"/ab\"]", "/a /ab "},
	{"[\"/a/b\\\\*/c\"]", "/a "},
};

static void test_what_is_watched_for_them(void **state)
{
	for (size_t i = 0; i < sizeof(covers) / sizeof(covers[0]); i++) {
		struct webhook_paths paths = paths_of(covers[i].paths);
		struct str bases[WEBHOOK_PATHS_MAX];
		size_t n = webhook_paths_bases(&paths, bases);
		scoped_str struct str all = {0};

		for (size_t k = 0; k < n; k++) {
			str_printf(&all, "%s ", bases[k].p);
			str_done(&bases[k]);
		}
		assert_string_equal(all.p, covers[i].bases);
		webhook_paths_done(&paths);
	}
}

/* ---- what one delivery has ---- */

static const struct file_batch_data data = {
	.sandbox = "sb_0", .watch = "fw_0", .n = 3, .at_ms = 1000};

static void test_a_delivery(void **state)
{
	struct file_batch batch = {0};
	scoped_str struct str out = {0};

	file_batch_add_gap(&batch, "first", 2, 70);
	file_batch_add_gap(&batch, "second", 1, 71);
	file_batch_add_gap(&batch, "first", 1, 72);
	file_batch_add(&batch, slice_of("{\"path\":\"/a\"}"), 80);
	file_batch_add(&batch, slice_of("{\"path\":\"/b\"}"), 81);
	assert_int_equal(batch.first_ms, 70);
	file_batch_write(&batch, &data, &out);
	assert_string_equal(out.p,
		"{\"type\":\"file.changed\",\"timestamp\":\"1970-01-01T00:00:01.000Z\",\"data\":{"
		"\"sandbox\":\"sb_0\",\"watch\":\"fw_0\",\"n\":3,\"gap\":\"first; second\","
		"\"changes\":[{\"path\":\"/a\"},{\"path\":\"/b\"}],\"left_out\":4}}");
	assert_int_equal(batch.first_ms, 0);
	str_reset(&out);
	file_batch_add(&batch, slice_of("{}"), 90);
	file_batch_write(&batch, &data, &out);
	assert_non_null(strstr(out.p, "\"gap\":null,\"changes\":[{}],\"left_out\":0}}"));
	file_batch_done(&batch);
}

static void test_a_delivery_is_bounded(void **state)
{
	scoped_mem char *large = mem_zero(1, FILE_BATCH_BYTES);
	struct file_batch batch = {0};
	scoped_str struct str out = {0};

	for (int i = 0; i < FILE_BATCH_MAX + 7; i++)
		file_batch_add(&batch, slice_of("1"), 5);
	assert_int_equal(batch.n, FILE_BATCH_MAX);
	assert_int_equal(batch.left_out, 7);
	file_batch_write(&batch, &data, &out);
	memset(large, '1', FILE_BATCH_BYTES - 2);
	file_batch_add(&batch, slice_of(large), 5);
	file_batch_add(&batch, slice_of("12"), 5);
	file_batch_add(&batch, slice_of("1"), 5);
	assert_int_equal(batch.n, 2);
	assert_int_equal(batch.left_out, 1);
	file_batch_done(&batch);
}

/* ---- how often ---- */

static void test_the_pace(void **state)
{
	struct file_pace pace = {0};
	struct file_batch batch = {.first_ms = 5000};
	int64_t sent[100];

	assert_int_equal(file_pace_due(&pace, &batch), 5100);
	for (int i = 0; i < 100; i++) { /* changes go on and on */
		sent[i] = file_pace_due(&pace, &batch);
		file_pace_note(&pace, sent[i]);
		batch.first_ms = sent[i] + 1;
	}
	for (int i = 1; i < 60; i++)
		assert_int_equal(sent[i] - sent[i - 1], 1000);
	for (int i = 70; i < 100; i++)
		assert_int_equal(sent[i] - sent[i - 1], 10000);
	batch.first_ms = sent[99] + 600000; /* then there is quiet */
	assert_int_equal(file_pace_due(&pace, &batch), batch.first_ms + 100);
	file_pace_note(&pace, batch.first_ms + 100);
	batch.first_ms += 200;
	assert_int_equal(file_pace_due(&pace, &batch), batch.first_ms + 900);
}

static void test_words_of_a_line(void **state)
{
	static const char line[] = "{\"at\":\"x\",\"change\":\"created\",\"path\":"
				   "\"/a\\\",\\\"change\\\":\\\"ended\\\"\"}";

	assert_true(file_source_line_is(slice_of(line), "created"));
	assert_false(file_source_line_is(slice_of(line), "ended"));
	assert_false(file_source_line_is(slice_of(line), "create"));
	assert_false(file_source_line_is(slice_of("{}"), "created"));
	assert_false(file_source_line_is(slice_of("{\"change\":\"crea"), "created"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_paths),
		cmocka_unit_test(test_which_paths),
		cmocka_unit_test(test_what_is_watched_for_them),
		cmocka_unit_test(test_a_delivery),
		cmocka_unit_test(test_a_delivery_is_bounded),
		cmocka_unit_test(test_the_pace),
		cmocka_unit_test(test_words_of_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
