/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite: a file, WAL, every commit synced. One connection writes, the others only read; a second program that writes
 * to the same file is waited for (BUSY_MS). A statement that reads ends after READ_MS. */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/scoped.h"

#define BUSY_MS        2000
#define READ_MS        10000
#define STEPS_PER_LOOK 20000      /* instructions of its machine between two looks at the clock */
#define APPLICATION_ID 0x434c4f43 /* "CLOC", in the file's head */

struct sqlite {
	struct db db;
	sqlite3 *handle;
	struct map *prepared; /* address of the db_sql to sqlite3_stmt */
	char *place;
	int64_t deadline_ns; /* 0: none */
	bool is_light;       /* as it is set now */
};

static struct sqlite *sqlite_of(struct db *db)
{
	return (struct sqlite *)db;
}

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EAGAIN;
	case SQLITE_CONSTRAINT:
		return -EEXIST;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_INTERRUPT:
		return -ETIMEDOUT;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return -EACCES;
	default:
		return -EIO;
	}
}

/* Says what code means for whoever runs the program. Its own words never hold a value of a row. */
static int fail(struct sqlite *s, int code)
{
	int r = errno_of(code);

	s->db.is_failed = true;
	if (r == -EUCLEAN)
		return err_set(s->db.err, r,
			"the database '%s' is damaged or none: move it away, start again, and run "
			"`cloche reindex`",
			s->place);
	if (r == -ETIMEDOUT)
		return err_set(s->db.err, r, "the database took more than %d s: ask for less",
			READ_MS / 1000);
	return err_set(s->db.err, r, "database '%s': %s", s->place, sqlite3_errmsg(s->handle));
}

static int on_steps(void *arg)
{
	const struct sqlite *s = arg;

	return s->deadline_ns && clock_mono_ns() > s->deadline_ns;
}

static int script(struct db *db, const char *text)
{
	struct sqlite *s = sqlite_of(db);
	int code = sqlite3_exec(s->handle, text, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : fail(s, code);
}

/* $1 is a name to SQLite, numbered by when it comes first; ?1 is what PostgreSQL means by $1. */
static char *with_question_marks(const char *text)
{
	char *copy = mem_dup(text);

	for (char *p = copy; *p; p++)
		if (*p == '$')
			*p = '?';
	return copy;
}

static sqlite3_stmt *prepare(struct sqlite *s, const struct db_sql *sql)
{
	unsigned long long address = (uintptr_t)sql;
	void **slot = map_slot(s->prepared, map_int_key(&address));
	scoped_mem char *text = NULL;

	if (!*slot) {
		sqlite3_stmt *stmt = NULL;

		text = with_question_marks(sql->text);
		if (sqlite3_prepare_v3(s->handle, text, -1, SQLITE_PREPARE_PERSISTENT, &stmt,
			    NULL) == SQLITE_OK)
			*slot = stmt;
	}
	return *slot;
}

static void bind(sqlite3_stmt *stmt, const struct db_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int at = (int)i + 1;

		if (values[i].is_null)
			(void)sqlite3_bind_null(stmt, at);
		else if (
			values[i]
				.is_text) /* the caller's, and there until the statement is reset */
			(void)sqlite3_bind_text(stmt, at,
				values[i].text.len ? values[i].text.p : "", (int)values[i].text.len,
				SQLITE_STATIC);
		else
			(void)sqlite3_bind_int64(stmt, at, values[i].i);
	}
}

static void read_row(sqlite3_stmt *stmt, struct db_value *row, int n)
{
	for (int i = 0; i < n; i++) {
		int type = sqlite3_column_type(stmt, i);

		row[i] = (struct db_value){
			.is_text = type == SQLITE_TEXT, .is_null = type == SQLITE_NULL};
		if (row[i].is_text)
			row[i].text =
				(struct slice){.p = (const char *)sqlite3_column_text(stmt, i),
					.len = (size_t)sqlite3_column_bytes(stmt, i)};
		else
			row[i].i = sqlite3_column_int64(stmt, i);
	}
}

/* Steps to the end, or until on_row has enough. */
static int64_t step_all(struct sqlite *s, sqlite3_stmt *stmt, db_row_fn on_row, void *arg)
{
	struct db_value row[DB_VALUES_MAX];
	int n_columns = sqlite3_column_count(stmt), code, r;
	int64_t n = 0;

	if (n_columns > DB_VALUES_MAX)
		abort();
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		n++;
		read_row(stmt, row, n_columns);
		db_read_texts(&s->db, row, n_columns);
		s->db.n_told += on_row != NULL;
		r = on_row ? on_row(row, arg) : 0;
		if (r)
			return r < 0 ? r : n;
	}
	if (code != SQLITE_DONE)
		return fail(s, code);
	return n_columns ? n : sqlite3_changes64(s->handle);
}

static int64_t run(struct db *db, const struct db_sql *sql, const struct db_value *values,
	size_t n_values, db_row_fn on_row, void *arg)
{
	struct sqlite *s = sqlite_of(db);
	sqlite3_stmt *stmt = prepare(s, sql);
	int64_t r;

	if (!stmt)
		return fail(s, sqlite3_extended_errcode(s->handle));
	bind(stmt, values, n_values);
	r = step_all(s, stmt, on_row, arg);
	(void)sqlite3_reset(stmt); /* says again what step said */
	(void)sqlite3_clear_bindings(stmt);
	return r;
}

/* A reader sees one state of the database from begin to commit. */
/* Without its sync a commit is lost with the power, and all behind it, too: the log that it is in is read up to the first
 * that is not whole. */
static int set_weight(struct db *db)
{
	struct sqlite *s = sqlite_of(db);
	int r = 0;

	if (s->is_light != db->is_light)
		r = script(db,
			db->is_light ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
	if (r == 0)
		s->is_light = db->is_light;
	return r;
}

static int begin(struct db *db)
{
	struct sqlite *s = sqlite_of(db);
	int r = set_weight(db);

	if (r < 0)
		return r;
	if (s->deadline_ns >= 0)
		s->deadline_ns = clock_mono_ns() + READ_MS * CLOCK_NS_PER_MS;
	return script(db, s->deadline_ns >= 0 ? "BEGIN" : "BEGIN IMMEDIATE");
}

static int commit(struct db *db)
{
	int r = script(db, "COMMIT");

	if (r < 0)
		db->driver->rollback(db);
	return r;
}

static void rollback(struct db *db)
{
	struct sqlite *s = sqlite_of(db);

	if (!sqlite3_get_autocommit(s->handle)) /* a full disk has rolled back by itself */
		(void)sqlite3_exec(s->handle, "ROLLBACK", NULL, NULL, NULL);
}

static void close_handle(struct db *db)
{
	struct sqlite *s = sqlite_of(db);
	struct slice key;
	void *stmt;

	for (size_t i = 0; map_next(s->prepared, &i, &key, &stmt);)
		(void)sqlite3_finalize(stmt);
	map_free(s->prepared);
	(void)sqlite3_close(s->handle);
	free(s->place);
	free(s);
}

static int on_id(void *arg, int n, char **values, char **names)
{
	long *next = *(long **)arg;

	*next = strtol(values[0], NULL, 10);
	(*(long **)arg)++;
	return 0;
}

/* Refuses the file of another program, which would else be filled with our tables. Both are read at one moment: another
 * process of ours may just be making them. */
static int check_application(struct sqlite *s)
{
	long read[2] = {0}, *next = read;
	int code = sqlite3_exec(s->handle,
		"BEGIN; PRAGMA application_id; SELECT count(*) FROM sqlite_master; COMMIT", on_id,
		&next, NULL);

	if (code != SQLITE_OK)
		return fail(s, code);
	if (read[1] && read[0] != APPLICATION_ID)
		return err_set(s->db.err, -EUCLEAN,
			"'%s' is the database of another program: name another file", s->place);
	return 0;
}

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* A server may write nowhere but beside its database. */
#define IN_MEMORY "PRAGMA temp_store = MEMORY;"

static int set_up(struct sqlite *s, enum db_use use)
{
	int r;

	(void)sqlite3_extended_result_codes(s->handle, 1);
	(void)sqlite3_busy_timeout(s->handle, BUSY_MS);
	(void)sqlite3_db_config(s->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (use == DB_READ) {
		sqlite3_progress_handler(s->handle, STEPS_PER_LOOK, on_steps, s);
		return script(
			&s->db, "PRAGMA query_only = ON; PRAGMA cell_size_check = ON;" IN_MEMORY);
	}
	s->deadline_ns = -1;
	r = check_application(s);
	if (r < 0)
		return r;
	return script(&s->db,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
		"PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 4000;" IN_MEMORY
		"PRAGMA cell_size_check = ON; PRAGMA application_id = " TEXT(APPLICATION_ID));
}

/* Nobody else is to read it, from the first moment; what SQLite lays beside it gets the same mode. One that is there is not
 * opened: to close it would drop the locks (fcntl(2)) of all connections of this process, and another process could take its
 * log away under them. */
static int make_file(const char *place, struct err *err)
{
	scoped_fd int fd = open(place, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	struct stat st;
	int r = fd < 0 ? -errno : 0;

	if (r == -EEXIST)
		r = stat(place, &st) < 0 || access(place, R_OK | W_OK) < 0 ? -errno
		    : S_ISDIR(st.st_mode)                                  ? -EISDIR
		                                                           : 0;
	return r < 0 ? err_set(err, r, "open database '%s': %m", place) : 0;
}

static int open_handle(const char *place, enum db_use use, struct db **ret_db, struct err *err)
{
	struct sqlite *s;
	int r = make_file(place, err), code;

	if (r < 0)
		return r;
	s = new0(struct sqlite);
	s->db = (struct db){.driver = &db_sqlite, .err = err};
	s->place = mem_dup(place);
	s->prepared = map_new();
	code = sqlite3_open_v2(
		place, &s->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	r = code == SQLITE_OK ? set_up(s, use) : fail(s, code);
	s->db.err = NULL;
	if (r < 0) {
		close_handle(&s->db);
		return r;
	}
	*ret_db = &s->db;
	return 0;
}

const struct db_driver db_sqlite = {
	.open = open_handle,
	.close = close_handle,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.run = run,
	.script = script,
};
