/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

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

static int changes_file(const struct place *place, const char *name)
{
	scoped_mem char *path = mem_printf("%s/changes/%s", place->dir, name);

	return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static bool has_changes_file(const struct place *place, const char *name)
{
	scoped_mem char *path = mem_printf("%s/changes/%s", place->dir, name);

	return access(path, F_OK) == 0;
}

static void test_list_of_changes_is_whole_or_not_there(void **state)
{
	const struct place *place = *state;
	const struct rlimit small = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
	scoped_mem char *text = new0_n(char, 5000);
	const struct slice json = {.p = memset(text, ' ', 5000), .len = 5000};
	struct record *record = create(place);
	struct rlimit before;
	int fd, r;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = record_put_changes(record, json);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EFBIG);
	assert_false(has_changes_file(place, "end.json"));
	assert_false(has_changes_file(place, "end.json.part"));
	record_free(record);

	fd = changes_file(place, "end.json.part"); /* killed while it wrote */
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(record_reopen(place->dir, &record, NULL), 0);
	assert_false(has_changes_file(place, "end.json.part"));
	assert_int_equal(record_put_changes(record, json), 0);
	assert_int_equal(record_put_changes(record, json), -EEXIST);
	assert_true(has_changes_file(place, "end.json"));
	record_free(record);
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

static void read_file(const struct place *place, const char *name, struct str *out)
{
	scoped_mem char *path = mem_printf("%s/%s", place->dir, name);

	str_reset(out);
	assert_int_equal(fdio_read_file(AT_FDCWD, path, 1 << 20, out), 0);
}

/* The disk takes nothing any more: what was numbered is kept, and the closing lines find room. */
static void test_full_disk(void **state)
{
	struct place *place = *state;
	struct event end = {.kind = EVENT_EXEC_END}, open = {.kind = EVENT_FILE_OPEN};
	scoped(reader) struct reader *reader = NULL;
	struct record_head head;
	struct record *record;
	const struct event *ev;
	uint64_t last, n = 0;
	struct err err;
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", place->top, "tmpfs", 0, "size=2m") < 0) {
		print_message("skipped: a small disk of its own takes root\n");
		skip();
	}
	record = create(place);
	do {
		r = record_emit(record, &open, NULL);
	} while (r == 0);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(record_flush(record, false), -ENOSPC);
	last = record_next_seq(record) - 1;
	assert_int_equal(record_release_reserve(record), 0);
	assert_int_equal(record_emit(record, &open, NULL), -ENOSPC);
	assert_int_equal(record_emit(record, &end, NULL), 0);
	assert_int_equal(end.seq, last + 1);
	assert_int_equal(record_flush(record, true), 0);
	record_get_head(record, RECORD_FINAL, &head);
	assert_int_equal(head.seq, last + 1);
	assert_int_equal(record_put_seal(record, &head, "s", "f", "k"), 0);
	record_free(record);
	assert_int_equal(reader_open(place->dir, &reader, &err), 0);
	while (reader_next(reader, &ev, &err) > 0)
		assert_int_equal(ev->seq, ++n);
	assert_int_equal(n, last + 1);
	assert_true(reader_has_ended(reader) && !reader_is_cut(reader));
	assert_int_equal(umount2(place->top, MNT_DETACH), 0);
}

static void test_output(void **state)
{
	struct place *place = *state;
	struct record *record = create(place);
	struct record_output *output;
	scoped_str struct str file = {0}, log = {0};
	char plain[32], sha256[DIGEST_HEX_SIZE];
	scoped_mem char *big = mem_zero(100000, 1), *whole = mem_zero(200000, 1);
	struct err err;
	size_t n;

	assert_int_equal(record_output_open(record, "ex_1", "../out", 10, &output, &err), -EINVAL);
	assert_int_equal(record_output_open(record, "ex_1", "out", 10, &output, &err), 0);
	assert_int_equal(record_output_write(output, "01234567", 8), 0);
	assert_int_equal(record_output_write(output, "89abcdef", 8), 0);
	assert_int_equal(record_output_write(output, "ghi", 3), 0);
	record_output_free(output);
	memset(big, 'x', 100000);
	assert_int_equal(record_output_open(record, "ex_2", "out", 150000, &output, &err), 0);
	assert_int_equal(record_output_write(output, "begin", 5), 0);
	assert_int_equal(record_output_write(output, big, 100000), 0);
	assert_int_equal(record_output_write(output, big, 100000), 0);
	record_output_free(output);
	assert_int_equal(record_output_open(record, "ex_3", "out", 10, &output, &err), 0);
	record_output_free(output); /* no output, no file */
	record_free(record);
	read_file(place, "outputs/ex_2.out.zst", &file);
	assert_int_equal(ZSTD_decompress(whole, 200000, file.p, file.len), 150000);
	assert_memory_equal(whole, "beginx", 6);
	assert_memory_equal(whole + 5, big, 100000);
	read_file(place, "outputs/ex_1.out.zst", &file);
	n = ZSTD_decompress(plain, sizeof(plain), file.p, file.len);
	assert_int_equal(n, 10);
	assert_memory_equal(plain, "0123456789", 10);
	digest_of(file.p, file.len, sha256);
	read_file(place, "log.jsonl", &log);
	assert_non_null(strstr(log.p, sha256));
}

static void test_cast(void **state)
{
	struct place *place = *state;
	struct record *record = create(place);
	struct record_cast_start start = {
		.exec_id = "ex_1", .title = "run PASSWORD=x", .rows = 24, .columns = 80};
	struct record_cast *cast;
	scoped_str struct str text = {0}, events = {0};
	const char *line;
	struct err err;

	assert_int_equal(record_cast_open(record, &start, &cast, &err), 0);
	assert_int_equal(record_cast_output(cast, "a\xe2\x82", 3), 0);
	assert_int_equal(record_cast_output(cast, "\xac\xff!\xf0\x9f", 5), 0);
	assert_int_equal(record_cast_resize(cast, 50, 132), 0);
	assert_int_equal(record_cast_output(cast, "\x98", 1), 0);
	record_cast_free(cast);
	record_free(record);
	read_file(place, "casts/ex_1.cast", &text);
	assert_true(slice_starts(
		str_slice(&text), "{\"version\":2,\"width\":80,\"height\":24,\"timestamp\":"));
	assert_null(strstr(text.p, "PASSWORD=x"));
	for (line = strchr(text.p, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		assert_int_equal(line[1], '[');
		str_printf(
			&events, "%.*s", (int)strcspn(strchr(line, ','), "\n"), strchr(line, ','));
	}
	assert_string_equal(events.p,
		",\"o\",\"a\"],\"o\",\"\xe2\x82\xac\xef\xbf\xbd!\"],\"r\",\"132x50\"]"
		",\"o\",\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]");
}

/* A line longer than readers take is cut by its writer. */
static void test_long_line(void **state)
{
	struct place *place = *state;
	scoped(record) struct record *record = create(place);
	scoped(reader) struct reader *reader = NULL;
	struct slice items[3];
	struct event ev = {.kind = EVENT_PROCESS_EXEC};
	scoped_mem char *big = mem_zero(3 << 20, 1);
	const struct event *got;
	struct err err;

	memset(big, '\n', 3 << 20);
	items[0] = slice_of("a");
	items[1] = (struct slice){.p = big, .len = 3 << 20};
	items[2] = items[1];
	event_set(&ev, argv, ((struct event_list){.items = items, .n = 3}));
	event_set(&ev, cwd, items[1]);
	assert_int_equal(record_emit(record, &ev, NULL), 0);
	assert_int_equal(record_flush(record, false), 0);
	assert_int_equal(reader_open(place->dir, &reader, &err), 0);
	assert_int_equal(reader_next(reader, &got, &err), 1);
	assert_int_equal(got->argv.n, 1);
	assert_true(got->argv_truncated);
	assert_int_equal(got->cwd.len, 65536);
}

/* What a record of somebody else's may hold: a reader stays upright and goes on. */
static void test_hostile(void **state)
{
	static const char *const lines[] = {
		"",
		"\xff\xfe",
		"{",
		"null",
		"{\"v\":1}",
		"{\"h\":\"x\"}",
		"{\"gap\":{\"first\":9,\"last\":1}}",
		"{\"v\":1,\"sandbox\":\"x\",\"seq\":99999999999999999999,\"kind\":\"hint\"}",
		"{\"v\":1,\"sandbox\":\"x\",\"seq\":-5,\"kind\":\"hint\"}",
		"{\"v\":1,\"sandbox\":\"x\",\"seq\":9223372036854775807,\"kind\":\"hint\"}",
	};
	struct place *place = *state;
	struct record *record = create(place);
	scoped(reader) struct reader *reader = NULL;
	scoped_str struct str seqs = {0}, deep = {0};
	struct err err;

	emit(record, EVENT_FILE_OPEN);
	record_free(record);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		append(place, "trace-00001.jsonl", lines[i]);
		append(place, "trace-00001.jsonl", "\n");
	}
	str_puts(&deep, "{\"v\":1,\"seq\":3,\"kind\":\"hint\",\"labels\":");
	for (int i = 0; i < 100000; i++)
		str_putc(&deep, '[');
	str_putc(&deep, '\n');
	append(place, "trace-00001.jsonl", deep.p);
	append(place, "trace-00001.jsonl",
		"{\"v\":1,\"sandbox\":\"x\",\"seq\":2,\"kind\":\"of.later\"}\n"
		"{\"v\":1,\"sandbox\":\"x\",\"seq\":4,\"kind\":\"hint\"}\n{\"v\":");
	assert_int_equal(reader_open(place->dir, &reader, &err), 0);
	read_seqs(reader, &seqs);
	assert_string_equal(seqs.p, "1 4 ");
	assert_int_equal(reader_n_bad(reader), 11);
	assert_true(reader_is_cut(reader));
}

/* Names that are something else than the files they should be. */
static void test_odd_files(void **state)
{
	static const struct {
		const char *name, *command, *want;
	} cases[] = {
		{"log.jsonl", "mkdir", "log.jsonl: Invalid argument"},
		{"log.jsonl", "ln -s /etc/passwd", "log.jsonl: Too many levels of symbolic links"},
		{"trace-00001.jsonl", "mkfifo", "trace-00001.jsonl: Invalid argument"},
		{"meta.json", "ln -s /etc/passwd", "meta.json: Too many levels of symbolic links"},
		{"seal.json", "mkdir", "seal.json: Invalid argument"},
	};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped_mem char *command = mem_printf("cd %s && rm -rf %s && %s %s", place->dir,
			cases[i].name, cases[i].command, cases[i].name);
		struct reader *reader = NULL;
		struct err err = {0};
		FILE *pipe;

		path_remove_all(AT_FDCWD, place->dir);
		record_free(create(place));
		pipe = popen(command, "r");
		assert_non_null(pipe);
		assert_int_equal(pclose(pipe), 0);
		assert_true(reader_open(place->dir, &reader, &err) < 0);
		assert_non_null(strstr(err.msg, cases[i].want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_write_and_follow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reopen, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_list_of_changes_is_whole_or_not_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_output, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cast, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_odd_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_full_disk, set_up, tear_down), /* the last: it unshares */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
