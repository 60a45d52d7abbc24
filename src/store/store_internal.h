/* SPDX-License-Identifier: Apache-2.0 */
/* How the parts of the store reach the database. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <errno.h>

#include "store/db.h"
#include "store/store.h"

_Static_assert(STORE_BATCH_MAX <= DB_MANY_MAX, "a call's rows are one run of a statement");

struct store_pool;
struct store_writer;
struct store_fresh;
struct store_listener;
struct store_reach;

struct store_where { /* borrowed for as long as there is a store */
	const struct db_driver *driver;
	const char *place;
	struct store_reach *reach;
};

struct store {
	const struct db_driver *driver;
	char *place;
	struct store_where where;
	struct store_reach *reach;
	struct store_pool *readers;
	struct store_pool
		*changers; /* where the driver is shared; else NULL, and the writer does it */
	struct store_writer *writer;
	struct store_fresh *fresh;
	struct store_listener *listener; /* NULL where nobody asked */
};

/* Each runs the work in a transaction on a connection of its kind, and tries again where another try may do. So the
 * work must be able to run twice; a callback of the caller's runs in the last one only, see store_read(). */

/* Nothing is written. Not tried again once a row was told. */
int store_read(struct store *store, db_work_fn work, void *arg, struct err *err);
/* Rows of one table, with numbers of its own counter. */
struct store_rows {
	const char *counter; /* NULL: without numbers */
	const struct db_sql *
		sql; /* adds one and does no harm when done twice; $1 is its number, if there are any */
	size_t n_values; /* of the statement, without the number */
	size_t n_rows;   /* 1 to STORE_BATCH_MAX */
	bool is_index;   /* made of a record, and made again where a loss of power takes it */
	db_fill_fn fill; /* sets them */
	void *arg;
};
/* Adds them all or none; how many were not there yet. Shares its commit with others, and its way to the server with
 * those that add to the same table. */
int store_append(struct store *store, const struct store_rows *rows, struct err *err);
/* Changes few rows. */
int store_change(struct store *store, db_work_fn work, void *arg, struct err *err);

/* Whether r will pass and there is time left; rests a little before it says yes. */
bool store_may_retry(int r, int64_t deadline_ns);

/* What all connections know of the server that they lead to. */
struct store_reach *store_reach_new(void);
void store_reach_free(struct store_reach *reach);
/* Opens one; -ECONNREFUSED without a try where it has been away for long and somebody has just tried. */
int store_reach_open(struct store_reach *reach, const struct store_where *where, enum db_use use,
	struct db **ret_db, struct err *err);
/* It answered. */
void store_reach_there(struct store_reach *reach);
/* Until when to try again what waits as long for a server that restarts. */
int64_t store_reach_deadline(struct store_reach *reach, int patience_ms);
/* r as callers of the store may see it: of no right to the database nobody who asks can do anything. */
int store_reach_told(int r, struct err *err);

/* The pool: connections that are made when needed, closed when broken. */
struct store_pool *store_pool_new(const struct store_where *where, enum db_use use, int max);
void store_pool_free(struct store_pool *pool);
int store_pool_take(struct store_pool *pool, struct db **ret_db, struct err *err);
void store_pool_give(struct store_pool *pool, struct db *db);

/* The writer: one thread, one connection, one commit for what waits. */
int store_writer_new(const struct store_where *where, struct store_writer **ret, struct err *err);
void store_writer_free(struct store_writer *writer);
int store_writer_do(struct store_writer *writer, db_work_fn work, void *arg, struct err *err);
int store_writer_add(struct store_writer *writer, const struct store_rows *rows, struct err *err);

/* Rows that were answered and are not there yet. */
struct store_fresh *store_fresh_new(void);
void store_fresh_free(struct store_fresh *fresh);
int store_fresh_expect(struct store_fresh *fresh, const char *sandbox, int64_t seq);
void store_fresh_arrived(struct store_fresh *fresh, const struct store_log_row *rows, size_t n);
void store_fresh_give_up(struct store_fresh *fresh, const char *sandbox, int64_t seq);
/* sandbox NULL: all. -ETIMEDOUT */
int store_fresh_wait(struct store_fresh *fresh, const char *sandbox);

void store_listener_free(struct store_listener *listener);
/* Tells this process's own listener; others hear of it through the database. */
void store_listener_tell(struct store_listener *listener, const char *key);

/* Values of rows, as they are added and held against those that are there: sandbox and seq first. */
#define STORE_LOG_VALUES       12
#define STORE_LIFECYCLE_VALUES 5
struct store_log_fill {
	const struct store_log_row *rows;
	struct str search; /* the caller's to be done with */
};
void store_log_fill_row(struct db_value *values, size_t i, void *fill);
void store_lifecycle_fill_row(struct db_value *values, size_t i, void *events);

/* Takes n numbers of a counter inside a transaction; the first of them. */
int store_take_numbers(struct db *db, const char *counter, size_t n, int64_t *ret_first);
int store_check_limit(int limit, int max, struct err *err);
/* Ids and names, of at most STORE_NAME_MAX bytes; NULL is none. */
int store_check_names(struct err *err, const char *const *names, size_t n);
/* Refuses none and an empty one, which is nobody's id: without it a query would be of no account, or of all. */
int store_check_account(const char *account, struct err *err);
#define STORE_CHECK_NAMES(err, ...) \
	store_check_names((err), (const char *const[]){__VA_ARGS__}, \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Migrations: each once, in order, under a lock that other replicas wait for. */
struct migration {
	int version;
	const char *name, *common, *sqlite, *postgres;
};
int store_migrate(struct db *db, const struct migration *list, size_t n, struct err *err);
extern const struct migration store_migrations[]; /* made of schema/ by tools/schema-embed */
extern const size_t store_n_migrations;

#endif
