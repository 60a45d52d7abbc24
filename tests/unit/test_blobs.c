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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/reader.h"
#include "record/record.h"
#include "record/verify.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define ID     "sb_0123456789abcdef"
#define SECRET "ghp_0123456789abcdefghijABCDEFGHIJ012345"

struct place {
	char top[64];
	char *dir;
};

static int set_up(void **state)
{
	struct place *place = new0(struct place);

	snprintf(place->top, sizeof(place->top), "/tmp/cloche-blobs-XXXXXX");
	if (!mkdtemp(place->top))
		return -1;
	place->dir = mem_printf("%s/" ID, place->top);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	path_remove_all(AT_FDCWD, place->top);
	free(place->dir);
	free(place);
	return 0;
}

static struct record *create(const struct place *place, bool raw)
{
	struct record_config config = {.dir = place->dir,
		.id = ID,
		.meta = slice_of("{}"),
		.owner_uid = geteuid(),
		.owner_gid = getegid(),
		.raw = raw,
		.blobs_max = 100};
	struct record *record = NULL;
	struct err err = {0};

	if (record_create(&config, &record, &err) < 0)
		fail_msg("%s", err.msg);
	return record;
}

static void put(struct record *record, const char *text, char ret_sha256[DIGEST_HEX_SIZE])
{
	assert_int_equal(record_blob_put(record, slice_of(text), RECORD_BLOB_WHOLE, ret_sha256), 0);
}

static void emit_request(struct record *record, const char *body_blob, const char *response_blob)
{
	struct event ev = {.kind = EVENT_NET_HTTP, .guest_ns = 5, .wall_ms = 6};

	event_set_text(&ev, body_blob, body_blob);
	event_set_text(&ev, response_body_blob, response_blob);
	assert_int_equal(record_emit(record, &ev, NULL), 0);
}

/* The next event of the record, or NULL. */
static const struct event *next(struct reader *reader)
{
	const struct event *ev = NULL;
	struct err err = {0};

	if (reader_next(reader, &ev, &err) < 0)
		fail_msg("%s", err.msg);
	return ev;
}

static struct reader *open_reader(const struct place *place)
{
	struct reader *reader = NULL;
	struct err err = {0};

	if (reader_open(place->dir, &reader, &err) < 0)
		fail_msg("%s", err.msg);
	return reader;
}

static void write_over(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void test_kept_once_and_read_back(void **state)
{
	struct place *place = *state;
	scoped(record) struct record *record = create(place, false);
	scoped(reader) struct reader *reader = NULL;
	scoped_str struct str text = {0};
	scoped_mem char *path = NULL;
	char one[DIGEST_HEX_SIZE], two[DIGEST_HEX_SIZE];
	const struct event *ev;
	struct stat st, again;

	put(record, "hello", one);
	assert_string_equal(
		one, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
	path = mem_printf("%s/bodies/%s", place->dir, one);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	put(record, "hello", two);
	assert_string_equal(one, two);
	assert_int_equal(stat(path, &again), 0);
	assert_true(st.st_ino == again.st_ino);
	emit_request(record, one, NULL);
	record_free(take(&record));
	reader = open_reader(place);
	ev = next(reader);
	assert_non_null(ev);
	assert_int_equal(reader_blob(reader, ev->body_blob, 100, &text), 0);
	assert_string_equal(text.p, "hello");
	assert_int_equal(reader_blob(reader, ev->body_blob, 3, &text), -EFBIG);
	assert_int_equal(reader_blob(reader, slice_of("../meta.json"), 100, &text), -EINVAL);
	write_over(path, "other");
	str_reset(&text);
	assert_int_equal(reader_blob(reader, ev->body_blob, 100, &text), -EBADMSG);
	assert_int_equal(text.len, 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(reader_blob(reader, ev->body_blob, 100, &text), -ENOENT);
}

/* The event names what was sent, the record what it kept. */
static void test_secrets_are_taken_out(void **state)
{
	struct place *place = *state;
	scoped(record) struct record *record = create(place, false);
	scoped(reader) struct reader *reader = NULL;
	scoped_str struct str text = {0};
	char kept[DIGEST_HEX_SIZE], sent[DIGEST_HEX_SIZE];
	const struct event *ev;

	digest_of("x " SECRET, strlen("x " SECRET), sent);
	put(record, "x " SECRET, kept);
	assert_string_not_equal(kept, sent);
	emit_request(record, NULL, sent);
	record_free(take(&record));
	reader = open_reader(place);
	ev = next(reader);
	assert_true(slice_is(ev->response_body_blob, kept));
	assert_int_equal(reader_blob(reader, ev->response_body_blob, 100, &text), 0);
	assert_int_equal(strncmp(text.p, "x [redacted #", 13), 0);
	assert_null(strstr(text.p, "ghp_"));
}

static void test_raw_keeps_all(void **state)
{
	struct place *place = *state;
	scoped(record) struct record *record = create(place, true);
	char kept[DIGEST_HEX_SIZE], sent[DIGEST_HEX_SIZE];

	digest_of(SECRET, strlen(SECRET), sent);
	put(record, SECRET, kept);
	assert_string_equal(kept, sent);
}

static void test_a_name_without_blob_is_left_out(void **state)
{
	static const char nothing[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	struct place *place = *state;
	scoped(record) struct record *record = create(place, false);
	scoped(reader) struct reader *reader = NULL;
	char one[DIGEST_HEX_SIZE];
	const struct event *ev;

	put(record, "a", one);
	emit_request(record, nothing, one);
	emit_request(record, "../../etc/passwd", NULL);
	record_free(take(&record));
	reader = open_reader(place);
	ev = next(reader);
	assert_false(event_has(ev, body_blob));
	assert_true(event_has(ev, body_truncated));
	assert_true(event_has(ev, response_body_blob));
	assert_false(event_has(ev, response_body_truncated));
	assert_false(event_has(next(reader), body_blob));
}

/* As many bytes as the record may have, and what is there already; then nothing more. */
static void test_bounded(void **state)
{
	struct place *place = *state;
	scoped(record) struct record *record = create(place, false);
	char text[61] = {0}, name[DIGEST_HEX_SIZE], second[DIGEST_HEX_SIZE];

	memset(text, 'a', 60);
	put(record, text, name);
	text[0] = 'b';
	assert_int_equal(
		record_blob_put(record, slice_of(text), RECORD_BLOB_WHOLE, second), -EDQUOT);
	text[0] = 'a';
	put(record, text, second);
	assert_string_equal(name, second);
	text[40] = '\0';
	put(record, text, second);
	assert_int_equal(
		record_blob_put(record, slice_of("c"), RECORD_BLOB_WHOLE, second), -EDQUOT);
}

/* One that goes on with less to spend than is spent keeps nothing more. */
static void test_bounded_when_resumed(void **state)
{
	struct place *place = *state;
	struct record *record = create(place, false);
	struct record_config less = {.dir = place->dir, .blobs_max = 5};
	char name[DIGEST_HEX_SIZE];
	struct err err = {0};

	put(record, "ten bytes.", name);
	record_free(record);
	assert_int_equal(record_resume(&less, &record, &err), 0);
	assert_int_equal(
		record_blob_put(record, slice_of("more"), RECORD_BLOB_WHOLE, name), -EDQUOT);
	put(record, "ten bytes.", name);
	record_free(record);
}

/* Of a body that was cut: what is left of a secret at the cut goes too. */
static void test_secrets_at_a_cut(void **state)
{
	static const struct {
		enum record_blob_part part;
		const char *sent, *kept;
	} rows[] = {
		{RECORD_BLOB_HEAD, "key ghp_0123456", "key [redacted #"},
		{RECORD_BLOB_TAIL, "0123456789abcdefXYZ, next", "[redacted #"},
		{RECORD_BLOB_WHOLE, "key ghp_0123456", NULL},
		{RECORD_BLOB_HEAD, "some words at last", NULL},
	};
	struct place *place = *state;
	scoped(record) struct record *record = create(place, false);
	scoped(reader) struct reader *reader = open_reader(place);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		scoped_str struct str text = {0};
		char name[DIGEST_HEX_SIZE];

		assert_int_equal(
			record_blob_put(record, slice_of(rows[i].sent), rows[i].part, name), 0);
		assert_int_equal(reader_blob(reader, slice_of(name), 100, &text), 0);
		if (rows[i].kept)
			assert_int_equal(strncmp(text.p, rows[i].kept, strlen(rows[i].kept)), 0);
		else
			assert_string_equal(text.p, rows[i].sent);
	}
}

static int answer(void *ctx)
{
	return *(int *)ctx;
}

/* Whether verify finds that, and how many times it names the folder at all. removed: what it is told of bodies that were
 * taken away. */
static void check_finds(const struct place *place, int removed, const char *want)
{
	const struct verify_options options = {.are_bodies_removed = answer, .ctx = &removed};
	struct verify_result result = {0};
	struct err err = {0};

	if (verify_record(place->dir, &options, &result, &err) < 0)
		fail_msg("%s", err.msg);
	if (want && !strstr(result.findings.p, want))
		fail_msg("wanted '%s' in: %s", want, result.findings.p);
	if (!want && strstr(result.findings.p, "bodies/"))
		fail_msg("not wanted: %s", result.findings.p);
	assert_int_equal(result.bodies_removed, removed > 0);
	assert_int_equal(result.bodies_gone, removed ? 2 : 0);
	verify_result_done(&result);
}

static void test_verify_looks_at_them(void **state)
{
	struct place *place = *state;
	scoped(record) struct record *record = create(place, false);
	scoped_mem char *path = NULL, *changed = NULL, *missing = NULL, *folder = NULL;
	char one[DIGEST_HEX_SIZE], two[DIGEST_HEX_SIZE];
	struct event ev = {.kind = EVENT_NET_WS, .guest_ns = 5, .wall_ms = 6};

	put(record, "hello", one);
	put(record, "world", two);
	event_set_text(&ev, body_blob, one);
	event_set_text(&ev, body_tail_blob, two);
	assert_int_equal(record_emit(record, &ev, NULL), 0);
	record_free(take(&record));
	check_finds(place, 0, NULL);
	path = mem_printf("%s/bodies/%s", place->dir, two);
	changed = mem_printf("bodies/%s was changed", two);
	missing = mem_printf("bodies/%s is missing", two);
	write_over(path, "W");
	check_finds(place, 0, changed);
	assert_int_equal(unlink(path), 0);
	check_finds(place, 0, missing);
	folder = mem_printf("%s/bodies", place->dir);
	path_remove_all(AT_FDCWD, folder);
	check_finds(place, 0, missing);
	check_finds(place, 1, NULL);
	check_finds(place, -EACCES, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept_once_and_read_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_secrets_are_taken_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_raw_keeps_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bounded_when_resumed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_secrets_at_a_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_name_without_blob_is_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_verify_looks_at_them, set_up, tear_down)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
