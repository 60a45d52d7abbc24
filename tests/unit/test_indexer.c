/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way into the store, where that, or the kernel, does not do as it should: what the store does not take waits and is
 * not read again, what inotify has no room for or drops is looked at all the same, and what has ended is not kept open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "event/event_json.h"
#include "server/indexer.h"
#include "server/webhooks.h"
#include "server/workers.h"
#include "store/db.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define BOX   "sb_0123456789abcdef"
#define OTHER "sb_0123456789abcdeg"
#define HOST  "3f:00"

static struct place {
	char top[40];
	struct server server;
	uint64_t seq;
	int64_t n_execs;
} place;

static bool has_no_room, has_dropped;

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	if (has_no_room && strstr(path, "log.jsonl")) {
		errno = ENOSPC;
		return -1;
	}
	return __real_inotify_add_watch(fd, path, mask);
}

/* What there is to be told gets lost, as where a queue is full. */
ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	ssize_t n = __real_read(fd, buf, len);
	const struct inotify_event lost = {.wd = -1, .mask = IN_Q_OVERFLOW};

	if (!has_dropped || n < (ssize_t)sizeof(lost) || len != 16384)
		return n;
	has_dropped = false;
	memcpy(buf, &lost, sizeof(lost));
	return sizeof(lost);
}

/* ---- a record ---- */

static void append(const char *id, const struct event *ev)
{
	scoped_mem char *path = mem_printf("%s/records/%s/log.jsonl", place.top, id);
	scoped_str struct str line = {0};
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	event_json_write(&line, ev, slice_of(id));
	str_putc(&line, '\n');
	assert_true(fd >= 0);
	assert_int_equal(fdio_write_all(fd, line.p, line.len), 0);
	close(fd);
}

static void happens(const char *id, enum event_kind kind)
{
	append(id, &(struct event){.kind = kind, .seq = ++place.seq, .wall_ms = 1000});
}

/* A command that has ended, with these words. */
static void runs(const char *id, const char *exec, struct slice word)
{
	struct event ev = {.kind = EVENT_EXEC_START, .seq = ++place.seq, .wall_ms = 2000};
	struct event end = {.kind = EVENT_EXEC_END, .wall_ms = 3000};

	ev.exec = end.exec = slice_of(exec);
	ev.id = end.id = ++place.n_execs;
	event_set_text(&ev, source, "agent");
	event_set_text(&ev, operation, "exec");
	event_set(&ev, argv, ((struct event_list){.items = &word, .n = 1}));
	append(id, &ev);
	end.seq = ++place.seq;
	event_set_text(&end, source, "agent");
	event_set_text(&end, operation, "exec");
	event_set(&end, argv, ((struct event_list){.items = &word, .n = 1}));
	event_set(&end, exit_code, 0);
	append(id, &end);
}

static void make_record(const char *id)
{
	static const char meta[] = "{\"created_at\":\"2026-11-29T14:10:02.000Z\","
				   "\"spec\":{\"account\":\"a\",\"labels\":{}}}";
	scoped_mem char *dir = mem_printf("%s/records/%s", place.top, id);
	int dirfd;

	assert_int_equal(path_make_all(dir, 0755), 0);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fdio_replace(dirfd, "meta.json", meta, sizeof(meta) - 1, 0600), 0);
	close(dirfd);
	happens(id, EVENT_SANDBOX_CREATED);
	happens(id, EVENT_SANDBOX_STARTED);
}

/* ---- a server ---- */

static int set_up(void **state)
{
	struct server *server = &place.server;
	scoped_mem char *records = NULL, *where = NULL;
	struct err err = {0};

	place = (struct place){.top = "/tmp/cloche-indexer-XXXXXX"};
	assert_non_null(mkdtemp(place.top));
	records = mem_printf("%s/records", place.top);
	where = mem_printf("sqlite:%s/db", place.top);
	assert_int_equal(path_make_all(records, 0755), 0);
	server->state_dir = place.top;
	server->host = HOST;
	server->base = event_base_new();
	assert_int_equal(store_open(where, &server->store, &err), 0);
	assert_int_equal(workers_new(server->base, 2, &server->workers, &err), 0);
	assert_int_equal(workers_new(server->base, 2, &server->slow, &err), 0);
	server->webhooks = webhooks_new(server);
	assert_int_equal(indexer_new(server, &server->indexer, &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	struct server *server = &place.server;

	workers_free(server->slow);
	workers_free(server->workers);
	indexer_free(server->indexer);
	webhooks_free(server->webhooks);
	store_free(server->store);
	event_base_free(server->base);
	has_no_room = has_dropped = false;
	return path_remove_all(AT_FDCWD, place.top);
}

static int catch_up(const char *id)
{
	struct err err = {0};

	return indexer_catch_up(place.server.indexer, id, NULL, NULL, &err);
}

static int on_row(const struct store_log_row *row, void *arg)
{
	str_printf(arg, "%s ", row->exec);
	return 0;
}

/* The execs of which there are rows, in their order. */
static void assert_rows(const char *id, const char *want)
{
	const struct store_query q = {.account = "a", .sandbox = id, .limit = 100};
	scoped_str struct str got = {0};
	struct err err = {0};

	if (store_log_page(place.server.store, &q, on_row, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(got.p ? got.p : "", want);
}

static bool has_row(const char *id, const char *exec)
{
	scoped_str struct str got = {0};

	return store_log_get(place.server.store, "a", id, exec, on_row, &got, NULL) >= 0;
}

static void loop_until(bool (*is_so)(void))
{
	int64_t until = clock_mono_ns() + 20 * CLOCK_NS_PER_S;

	while (!is_so()) {
		assert_true(clock_mono_ns() < until);
		event_base_loop(place.server.base, EVLOOP_NONBLOCK);
		(void)usleep(2000);
	}
}

static int n_open_of_records(void)
{
	scoped_mem char *records = mem_printf("%s/records/", place.top);
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir))) {
		char to[256] = "";

		(void)!readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1);
		n += strncmp(to, records, strlen(records)) == 0;
	}
	closedir(dir);
	return n;
}

/* ---- tests ---- */

static void test_what_ended_is_let_go(void **state)
{
	make_record(BOX);
	runs(BOX, "ex_1", slice_of("true"));
	assert_int_equal(catch_up(BOX), 0);
	assert_true(n_open_of_records() > 0);
	runs(BOX, "ex_2", slice_of("true"));
	happens(BOX, EVENT_SANDBOX_STOPPED);
	happens(BOX, EVENT_SANDBOX_REMOVED);
	assert_int_equal(catch_up(BOX), 0);
	assert_int_equal(n_open_of_records(), 0);
	assert_rows(BOX, "ex_1 ex_2 ");
	assert_int_equal(catch_up(BOX), 0); /* and can be asked about again */
	assert_int_equal(n_open_of_records(), 0);
}

static void script(const char *text)
{
	scoped_mem char *path = mem_printf("%s/db", place.top);
	struct err err = {0};
	struct db *db;

	assert_int_equal(db_sqlite.open(path, DB_WRITE, &db, &err), 0);
	db->err = &err;
	if (db_sqlite.script(db, text) < 0)
		fail_msg("%s", err.msg);
	db_close(db);
}

static void test_what_was_not_taken_waits(void **state)
{
	scoped_mem char *log = mem_printf("%s/records/" BOX "/log.jsonl", place.top);
	scoped_str struct str row = {0}, again = {0};
	struct err err = {0};

	make_record(BOX);
	assert_int_equal(catch_up(BOX), 0);
	script("ALTER TABLE log RENAME TO away");
	runs(BOX, "ex_1", slice_of("true"));
	assert_int_equal(indexer_catch_up(place.server.indexer, BOX, "ex_1", &row, &err), 1);
	assert_non_null(strstr(row.p, "\"exec\":\"ex_1\""));
	runs(BOX, "ex_2", slice_of("true"));
	assert_int_equal(indexer_catch_up(place.server.indexer, BOX, "ex_1", &again, &err), 1);
	assert_string_equal(again.p, row.p);
	/* What it has read it does not need to read again; what comes behind it does. */
	assert_int_equal(fdio_write_all(open(log, O_WRONLY), "xxxxxxxxxxxxxxxx", 16), 0);
	script("ALTER TABLE away RENAME TO log");
	assert_int_equal(catch_up(BOX), 0);
	assert_rows(BOX, "ex_1 ex_2 ");
}

static int on_long(const struct store_log_row *row, void *arg)
{
	assert_non_null(strstr(row->json, "\"argv\":null"));
	assert_non_null(strstr(row->json, "\"omitted\":[\"argv\"]"));
	assert_true(strlen(row->json) < 4096);
	return 0;
}

/* One row that the store cannot hold would keep out all behind it. */
static void test_a_row_that_is_too_long(void **state)
{
	scoped_mem char *word = mem_zero(1, 1200000);
	struct err err = {0};

	memset(word, 'x', 1200000);
	make_record(BOX);
	runs(BOX, "ex_1", (struct slice){.p = word, .len = 1200000});
	runs(BOX, "ex_2", slice_of("true"));
	assert_int_equal(catch_up(BOX), 0);
	assert_rows(BOX, "ex_1 ex_2 ");
	assert_true(store_log_get(place.server.store, "a", BOX, "ex_1", on_long, NULL, &err) >= 0);
}

static bool has_first(void)
{
	return has_row(BOX, "ex_1");
}

static bool has_second(void)
{
	return has_row(BOX, "ex_2");
}

static bool has_other(void)
{
	return has_row(OTHER, "ex_3");
}

static void test_no_room_to_watch(void **state)
{
	has_no_room = true;
	make_record(BOX);
	runs(BOX, "ex_1", slice_of("true"));
	loop_until(has_first);
	runs(BOX, "ex_2", slice_of("true")); /* nobody tells */
	loop_until(has_second);
}

static void test_what_was_dropped(void **state)
{
	make_record(BOX);
	runs(BOX, "ex_1", slice_of("true"));
	loop_until(has_first);
	has_dropped = true; /* the news of both, of which one is not known yet */
	make_record(OTHER);
	runs(OTHER, "ex_3", slice_of("true"));
	runs(BOX, "ex_2", slice_of("true"));
	loop_until(has_second);
	loop_until(has_other);
}

static void test_an_account_that_is_not_there(void **state)
{
	struct err err = {0};

	make_record(BOX);
	assert_int_equal(store_account_add(place.server.store,
				 &(struct store_account){.id = "b", .name = "a"}, &err),
		0); /* somebody has its id as a name */
	assert_int_equal(catch_up(BOX), 0);
	assert_rows(BOX, "");
	assert_int_equal(store_account_add(place.server.store,
				 &(struct store_account){.id = "a", .name = "x"}, &err),
		-EEXIST);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_ended_is_let_go),
		TEST(test_what_was_not_taken_waits),
		TEST(test_a_row_that_is_too_long),
		TEST(test_no_room_to_watch),
		TEST(test_what_was_dropped),
		TEST(test_an_account_that_is_not_there),
	};

	return cmocka_run_group_tests_name("indexer", tests, NULL, NULL);
}
