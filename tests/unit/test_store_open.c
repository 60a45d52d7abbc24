/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: migrations, other versions, what is no database of ours. */
#include "store_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/store_internal.h"

static struct db *open_db(void)
{
	struct err err = {0};
	struct db *db = NULL;
	const char *at = place.is_postgres ? place.where : place.where + strlen("sqlite:");

	assert_good((place.is_postgres ? &db_postgres : &db_sqlite)->open(at, DB_WRITE, &db, &err));
	return db;
}

static void script(const char *text)
{
	struct db *db = open_db();

	assert_int_equal(db->driver->script(db, text), 0);
	db_close(db);
}

static int64_t number(struct db *db, const struct db_sql *sql)
{
	int64_t n = -1;

	assert_int_equal(db_run_values(db, sql, NULL, 0, db_row_int, &n), 1);
	return n;
}

static void assert_refused(int want, const char *says)
{
	struct store *store = NULL;
	struct err err = {0};

	assert_int_equal(store_open(place.where, &store, &err), want);
	assert_null(store);
	if (!strstr(err.msg, says))
		fail_msg("'%s' does not say '%s'", err.msg, says);
}

static void test_newer_version(void **state)
{
	store_close(place_open());
	script("INSERT INTO migration VALUES (99, 'later', 'x', 1)");
	assert_refused(-EPROTONOSUPPORT, "the database is of version 99 and this cloche knows none "
					 "after 2: use a newer cloche");
}

static void test_other_line(void **state)
{
	store_close(place_open());
	store_close(place_open()); /* its own again */
	script("UPDATE migration SET digest = 'x'");
	assert_refused(-EUCLEAN, "made by another line of cloche");
}

static const struct db_sql count_accounts = {.text = "SELECT count(*) FROM account WHERE id = 'a'"};
static const struct db_sql version = {.text = "SELECT max(version) FROM migration"};
static const struct db_sql note = {.text = "SELECT note FROM account WHERE id = 'a'"};

static void test_migrating_data(void **state)
{
	struct migration steps[4] = {store_migrations[0], store_migrations[1],
		{.version = 3,
			.name = "note",
			.common = "ALTER TABLE account ADD COLUMN note BIGINT NOT NULL DEFAULT 5;"
				  "UPDATE account SET note = 6 WHERE id = 'a';",
			.sqlite = "",
			.postgres = ""},
		{.version = 4,
			.name = "broken",
			.common = "UPDATE account SET note = 7; SELECT nonsense;",
			.sqlite = "",
			.postgres = ""}};
	struct err err = {0};
	struct db *db = open_db();
	struct store *store;

	assert_good(store_migrate(db, store_migrations, 1, &err));
	store = place_open();
	place_people(store);
	store_close(store);
	assert_int_equal(store_n_migrations, 2);
	assert_good(store_migrate(db, steps, 3, &err));
	assert_int_equal(number(db, &count_accounts), 1);
	assert_int_equal(number(db, &note), 6);
	/* What fails half-way was never begun. */
	assert_true(store_migrate(db, steps, 4, &err) < 0);
	assert_non_null(strstr(err.msg, "bring the database to version 4 (broken): "));
	assert_int_equal(number(db, &version), 3);
	assert_int_equal(number(db, &note), 6);
	assert_good(store_migrate(db, steps, 3, &err));
	db_close(db);
	assert_refused(-EPROTONOSUPPORT, "of version 3");
}

/* What a database of each version holds, in the words of that version: one for each step. */
#define FILLING_1 \
	"INSERT INTO account VALUES ('a', 'team-a', 1, 1, 1);" \
	"INSERT INTO api_key VALUES ('k-a', 'a', 'h-a', 'p', 'n', 'admin', 1, 1, 0, 0);" \
	"INSERT INTO sandbox VALUES ('sb-a', 1, 'a', 'n', 'ended', '/r', '{}', 1, 2);" \
	"INSERT INTO log VALUES (1, 'sb-a', 1, 1, 'a', 'ex1', 'agent', 'exec', 0, 0, 1, 1," \
	" 'make test', '{}');" \
	"UPDATE counter SET last = 1 WHERE name IN ('log', 'sandbox');"
static const char *const fillings[] = {
	FILLING_1, FILLING_1, /* 2 has the same tables */
};

static int on_row(const struct store_log_row *row, void *arg)
{
	str_printf(arg, "%lld %s/%lld %s\n", (long long)row->n, row->sandbox, (long long)row->seq,
		row->exec);
	return 0;
}

/* From each version there was, with its data, to today's: what was there is there, and more can be added. */
static void test_every_version(void **state)
{
	struct store_log_row row = {.sandbox = "sb-a",
		.seq = 2,
		.exec = "ex2",
		.source = "agent",
		.operation = "exec",
		.search = {"make", 4},
		.json = "{}"};
	struct store_query q = {.account = "a", .q = "make", .limit = 10};
	struct str out = {0};
	struct err err = {0};

	assert_int_equal(store_n_migrations, sizeof(fillings) / sizeof(fillings[0]));
	for (size_t n = 1; n <= sizeof(fillings) / sizeof(fillings[0]); n++) {
		struct store *store;
		struct db *db;

		place_empty();
		db = open_db();
		assert_good(store_migrate(db, store_migrations, n, &err));
		assert_int_equal(db->driver->script(db, fillings[n - 1]), 0);
		db_close(db);
		store = place_open();
		assert_int_equal(store_log_add(store, &row, 1, &err), 1);
		assert_int_equal(store_log_page(store, &q, on_row, &out, &err), 2);
		assert_told(&out, "1 sb-a/1 ex1\n2 sb-a/2 ex2\n");
		store_close(store);
	}
}

/* Replicas that start at once on an empty database. */
static void test_starting_at_once(void **state)
{
	pid_t pids[4];
	int status, go[2];
	struct db *db;
	char c;

	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct store *store = NULL;
			struct err err = {0};

			(void)close(go[1]);
			(void)!read(go[0], &c, 1);
			status = store_open(place.where, &store, &err);
			if (status < 0)
				(void)fprintf(stderr, "%d: %s\n", status, err.msg);
			store_close(store);
			_exit(status == 0 ? 0 : 1);
		}
	}
	(void)close(go[0]);
	(void)close(go[1]);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	db = open_db();
	assert_int_equal(number(db, &version), (int64_t)store_n_migrations);
	db_close(db);
}

static void write_file(const char *bytes, size_t len, off_t at)
{
	int fd = open(place.where + strlen("sqlite:"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
	(void)close(fd);
}

static void test_no_database(void **state)
{
	char garbage[8192];

	place_only_sqlite("its files are its server's");
	memset(garbage, 'g', sizeof(garbage));
	write_file(garbage, sizeof(garbage), 0);
	assert_refused(-EUCLEAN,
		"is damaged or none: move it away, start again, and run `cloche reindex`");
	place_empty();
	/* A good head, and pages that are none. */
	store_close(place_open());
	for (off_t at = 100; at < 100 * 4096; at += 4096)
		write_file(garbage, 3000, at);
	assert_refused(-EUCLEAN, "is damaged or none");
}

static void test_foreign_database(void **state)
{
	place_only_sqlite("a schema may have other tables");
	script("PRAGMA application_id = 7; CREATE TABLE theirs (x)");
	assert_refused(-EUCLEAN, "is the database of another program: name another file");
}

/* Of another process: whether somebody holds a lock on the file. */
static bool is_locked(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		int fd = open(path, O_RDWR);

		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 ? 2 : lock.l_type != F_UNLCK);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

/* What holds the log in its place for all connections is lost with the first descriptor of the file that is closed. */
static void test_locks_stay(void **state)
{
	const char *path = place.where + strlen("sqlite:");
	struct store *store;
	struct err err = {0};
	struct db *db;

	place_only_sqlite("its files are its server's");
	store = place_open();
	assert_good(store_check(store, &err));
	assert_true(is_locked(path));
	db = open_db();
	assert_true(is_locked(path));
	db_close(db);
	store_close(store);
	assert_false(is_locked(path));
}

static void test_encoding(void **state)
{
	struct store *store = NULL;
	struct err err = {0};
	char where[192];

	place_only_postgres("its text is UTF-8 always");
	script("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE "
	       "template0");
	(void)snprintf(where, sizeof(where), "postgres://cloche@/latin?host=%s", place.dir);
	assert_int_equal(store_open(where, &store, &err), -EINVAL);
	assert_string_equal(
		err.msg, "the database is in LATIN1: make one with ENCODING 'UTF8', and name that");
}

static void test_mode(void **state)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	struct store *store;
	char path[192];
	struct stat st;

	place_only_sqlite("its files are its server's");
	store = place_open();
	place_people(store);
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(
			path, sizeof(path), "%s%s", place.where + strlen("sqlite:"), ends[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	store_close(store);
}

static void test_places(void **state)
{
	static const struct {
		const char *where;
		int r;
		const char *says;
	} cases[] = {
		{"", -EINVAL, "want sqlite:PATH or postgres://USER@HOST/NAME"},
		{"sqlite:", -EINVAL, "want sqlite:PATH"},
		{"mysql://x", -EINVAL, "want sqlite:PATH"},
		{"sqlite:/nonexistent/db", -ENOENT,
			"open database '/nonexistent/db': No such file or directory"},
		{"sqlite:/", -EISDIR, "open database '/': Is a directory"},
		{"postgres://cloche@/x?host=/nonexistent", -ECONNREFUSED,
			"the database cannot be reached: "},
		{"postgres://cloche@/x?sslmode=wrong", -ECONNREFUSED,
			"the database cannot be reached: "},
	};
	struct store *store = NULL;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strncmp(cases[i].where, "postgres", 8) == 0 && !place.is_postgres)
			continue;
		assert_int_equal(store_open(cases[i].where, &store, &err), cases[i].r);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
	}
}

static int empty(void **state)
{
	place_empty();
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup(fn, empty)

int opening_run(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_newer_version),
		TEST(test_other_line),
		TEST(test_migrating_data),
		TEST(test_every_version),
		TEST(test_starting_at_once),
		TEST(test_no_database),
		TEST(test_foreign_database),
		TEST(test_locks_stay),
		TEST(test_encoding),
		TEST(test_mode),
		TEST(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
