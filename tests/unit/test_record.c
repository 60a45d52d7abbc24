/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/reader.h"
#include "record/record.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define ID "sb_0123456789abcdef"

struct place {
	char top[64];
	char *dir;
};

static int set_up(void **state)
{
	struct place *place = new0(struct place);

	snprintf(place->top, sizeof(place->top), "/tmp/cloche-record-XXXXXX");
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

static struct record *create(const struct place *place)
{
	struct record_config config = {.dir = place->dir,
		.id = ID,
		.meta = slice_of("{\"a\":1}"),
		.owner_uid = geteuid(),
		.owner_gid = getegid()};
	struct record *record = NULL;
	struct err err = {0};

	if (record_create(&config, &record, &err) < 0)
		fail_msg("%s", err.msg);
	return record;
}

static void emit(struct record *record, enum event_kind kind)
{
	struct event ev = {.kind = kind, .guest_ns = 5, .wall_ms = 6, .exec = slice_of("ex_1")};

	assert_int_equal(record_emit(record, &ev, NULL), 0);
}

/* The seqs that a reader gives, as text. */
static void read_seqs(struct reader *reader, struct str *out)
{
	const struct event *ev;
	struct err err = {0};
	int r;

	str_reset(out);
	while ((r = reader_next(reader, &ev, &err)) > 0)
		str_printf(out, "%llu ", (unsigned long long)ev->seq);
	if (r < 0)
		fail_msg("%s", err.msg);
}

static void test_write_and_follow(void **state)
{
	struct place *place = *state;
	scoped(record) struct record *record = create(place);
	scoped(reader) struct reader *reader = NULL;
	scoped_str struct str seqs = {0};
	struct err err;

	assert_int_equal(reader_open(place->dir, &reader, &err), 0);
	read_seqs(reader, &seqs);
	assert_int_equal(seqs.len, 0);
	emit(record, EVENT_EXEC_START);
	emit(record, EVENT_FILE_OPEN);
	emit(record, EVENT_EXEC_END);
	read_seqs(reader, &seqs);
	assert_int_equal(seqs.len, 0);
	assert_int_equal(record_flush(record, false), 0);
	read_seqs(reader, &seqs);
	assert_string_equal(seqs.p, "1 2 3 ");
	emit(record, EVENT_FILE_OPEN);
	emit(record, EVENT_SANDBOX_REMOVED);
	assert_int_equal(record_n_rows(record), 1);
	assert_int_equal(record_next_seq(record), 6);
	assert_true(reader_is_live(reader));
	assert_false(reader_is_cut(reader));
	record_free(take(&record));
	assert_false(reader_is_live(reader));
	read_seqs(reader, &seqs);
	assert_string_equal(seqs.p, "4 5 ");
	assert_true(reader_is_cut(reader)); /* nobody sealed it */
	assert_true(slice_is(reader_meta(reader), "{\"a\":1}"));
}

static void append(const struct place *place, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", place->dir, name);
	int fd = open(path, O_WRONLY | O_APPEND);

	assert_true(fd >= 0);
	assert_int_equal(fdio_write_all(fd, text, strlen(text)), 0);
	close(fd);
	free(path);
}

static void test_reopen(void **state)
{
	struct place *place = *state;
	struct record *record = create(place), *other = NULL;
	scoped(reader) struct reader *reader = NULL;
	scoped_str struct str seqs = {0};
	struct record_mend mend;
	struct err err;

	emit(record, EVENT_EXEC_START);
	emit(record, EVENT_FILE_OPEN);
	assert_int_equal(record_flush(record, false), 0);
	assert_int_equal(record_reopen(place->dir, &other, &err), -EBUSY);
	record_free(record);
	append(place, "log.jsonl",
		"{\"v\":1,\"sandbox\":\"" ID "\",\"seq\":5,\"guest_ns\":1,\"wall_ms\":1,"
		"\"kind\":\"exec.end\"}\n{\"v\":1,\"sand");
	append(place, "trace-00001.jsonl", "{\"v\":1,\"sandbox\":\"" ID "\",\"se");
	assert_int_equal(record_reopen(place->dir, &record, &err), 0);
	mend = record_get_mend(record);
	assert_int_equal(mend.torn_bytes, 12 + 42);
	assert_int_equal(mend.lost, 2); /* 3 and 4 */
	assert_int_equal(record_next_seq(record), 6);
	assert_int_equal(record_n_rows(record), 1);
	emit(record, EVENT_TRACE_BLIND);
	emit(record, EVENT_SANDBOX_ERROR);
	record_free(record);
	assert_int_equal(record_reopen(place->dir, &record, &err), 0);
	mend = record_get_mend(record);
	assert_int_equal(mend.torn_bytes + mend.lost, 0);
	record_free(record);
	assert_int_equal(reader_open(place->dir, &reader, &err), 0);
	read_seqs(reader, &seqs);
	assert_string_equal(seqs.p, "1 2 5 6 7 ");
	assert_int_equal(reader_n_bad(reader), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_write_and_follow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reopen, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
