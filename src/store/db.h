/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a database, whichever it is. What is asked is a text of ours that never changes, with $1, $2 ...
 * for values that are bound: there is no way to put data into the text. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"
#include "util/slice.h"
#include "util/str.h"

/* Texts longer than this are refused, whatever they are for. */
#define DB_TEXT_MAX   (1 << 20)
#define DB_VALUES_MAX 16   /* of a statement, or columns of a row */
#define DB_MANY_MAX   1000 /* rows of one db_run_many() */

/* A text is any bytes, NUL among them: what goes in comes out (db_escape.h). */
struct db_value {
	bool is_text, is_null;
	int64_t i;
	struct slice text;
};

/* A statement; static, since its address is its name among the prepared ones. */
struct db_sql {
	const char *text;
	const char *postgres; /* where that needs other words */
};

/* Called for each row; its texts end with a NUL and live for the call. Nonzero ends the reading; a negative one
 * becomes the result. */
typedef int (*db_row_fn)(const struct db_value *row, void *arg);

enum db_use {
	DB_READ,
	DB_WRITE,
};

struct db {
	const struct db_driver *driver;
	bool is_failed;        /* a statement failed: only rolling back is left */
	bool is_lost;          /* the server is gone: only closing is left */
	bool is_commit_unsure; /* it went while committing: nobody knows which way */
	bool is_light;         /* a commit need not be on disk; set before the begin. A hint */
	int64_t n_changed;     /* rows read or changed since the begin */
	int64_t n_told;        /* rows that a callback got since the begin */
	struct err *err;       /* where the reason goes; may be NULL */
	struct str bound;      /* texts of the statement that had to be escaped */
	struct str told;       /* texts of the row that were */
};

/* One statement for many rows. fill() sets the values of a row (0 to n_rows - 1), which are all of the same types, and
 * what they point to until it is called again; it may be called for a row more than once. */
typedef void (*db_fill_fn)(struct db_value *values, size_t row, void *arg);
struct db_many {
	size_t n_values, n_rows; /* at most DB_VALUES_MAX, 1 to DB_MANY_MAX */
	db_fill_fn fill;
	void *arg;
	int *ret_changed; /* of n_rows: how many each one changed */
};

struct db_driver {
	bool is_shared; /* several processes write at once, each on connections of its own */
	int (*open)(const char *place, enum db_use use, struct db **ret_db, struct err *err);
	void (*close)(struct db *db);
	int (*begin)(struct db *db);
	int (*commit)(struct db *db);
	void (*rollback)(struct db *db);
	int64_t (*run)(struct db *db, const struct db_sql *sql, const struct db_value *values,
		size_t n_values, db_row_fn on_row, void *arg);
	/* NULL: one row after the other */
	int64_t (*run_many)(struct db *db, const struct db_sql *sql, const struct db_many *many);
	int (*script)(
		struct db *db, const char *text); /* many statements at once, without values */
	/* Waits until another process said something on our channel, at most timeout_ms: 1 and the text, 0 not in that
	 * time, or a negative errno. NULL where there are no other processes. */
	int (*listen)(struct db *db, int timeout_ms, char *ret_text, size_t size);
};

extern const struct db_driver db_sqlite;
extern const struct db_driver db_postgres; /* in a build without it, its open says so */

/* Rows read, or rows changed where the statement returns none; or a negative errno, and the reason in db->err: -EEXIST
 * (a constraint), -EAGAIN (another try may do), -ETIMEDOUT, -ECONNRESET (server gone), -ENOSPC, -EUCLEAN (damaged),
 * -EINVAL (a text that is too long). */
int64_t db_run_values(struct db *db, const struct db_sql *sql, const struct db_value *values,
	size_t n_values, db_row_fn on_row, void *arg);
/* The same for each row, of a statement that returns none. How many rows of the database were changed in all; after an
 * error all that is left is rolling back. */
int64_t db_run_many(struct db *db, const struct db_sql *sql, const struct db_many *many);

/* For drivers: the values of a row, ready to be bound; and what a row that was read says, in place. */
int db_many_row(struct db *db, const struct db_many *many, size_t row,
	struct db_value values[DB_VALUES_MAX]);
void db_read_texts(struct db *db, struct db_value *row, int n);

#define db_run(db, sql, on_row, arg, ...) \
	db_run_values((db), (sql), (const struct db_value[]){__VA_ARGS__}, \
		sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value), \
		(on_row), (arg))

/* One attempt at work inside a transaction. */
typedef int (*db_work_fn)(struct db *db, void *arg);

int db_begin(struct db *db, struct err *err);
int db_commit(struct db *db);
void db_rollback(struct db *db);
/* Begin, work, commit; rolled back where the work returns a negative errno. */
int db_transact(struct db *db, db_work_fn work, void *arg, struct err *err);
void db_close(struct db *db);

static inline struct db_value db_int(int64_t v)
{
	return (struct db_value){.i = v};
}

static inline struct db_value db_int_or_null(bool has, int64_t v)
{
	return (struct db_value){.i = v, .is_null = !has};
}

/* NULL is the empty text: no column tells the two apart. */
static inline struct db_value db_text(const char *text)
{
	return (struct db_value){.is_text = true, .text = slice_of(text ? text : "")};
}

/* A row function for one whole number: arg is an int64_t. */
int db_row_int(const struct db_value *row, void *arg);

/* Rows that are kept until the transaction is over: what is told of a change must have come about. */
struct db_rows {
	struct db_value *values;
	size_t n, cap, n_columns;
};

void db_rows_reset(struct db_rows *rows);
void db_rows_done(struct db_rows *rows);
int db_rows_add(const struct db_value *row, void *arg); /* a row function; arg is the db_rows */
#define scoped_rows __attribute__((cleanup(db_rows_done)))

#endif
