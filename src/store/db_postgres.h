/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the PostgreSQL driver share: one connection, and how values are bound. */
#ifndef STORE_DB_POSTGRES_H
#define STORE_DB_POSTGRES_H

#include <libpq-fe.h>

#include "store/db.h"
#include "util/map.h"

#define DB_POSTGRES_INT_OID  20 /* int8 */
#define DB_POSTGRES_INT_SIZE 24 /* a whole number as text, or an address */

struct postgres {
	struct db db;
	PGconn *conn;
	struct map *prepared; /* address of the db_sql to itself */
};

static inline struct postgres *db_postgres_of(struct db *db)
{
	return (struct postgres *)db;
}

/* Values as libpq takes them. They point into the db_values, which must stay as long. */
struct db_postgres_bound {
	const char *values[DB_VALUES_MAX];
	int lens[DB_VALUES_MAX], formats[DB_VALUES_MAX];
	char ints[DB_VALUES_MAX][DB_POSTGRES_INT_SIZE];
	char statement[DB_POSTGRES_INT_SIZE]; /* its name on the server */
};
void db_postgres_bind(struct db_postgres_bound *bound, const struct db_sql *sql,
	const struct db_value *values, size_t n);

/* Prepares the statement where this connection has not yet; the values tell the types. */
int db_postgres_prepare(
	struct postgres *p, const struct db_sql *sql, const struct db_value *values, size_t n);

/* Takes the result, which may be NULL, puts its reason into db->err and marks the connection; the errno. */
int db_postgres_fail(struct postgres *p, PGresult *result);
/* Rows that a finished statement changed. */
int64_t db_postgres_count(PGresult *result);

/* The parts of the driver that have files of their own. */
int db_postgres_open(const char *place, enum db_use use, struct db **ret_db, struct err *err);
void db_postgres_close(struct db *db);
int db_postgres_listen(struct db *db, int timeout_ms, char *ret_text, size_t size);
int64_t db_postgres_many_run(struct db *db, const struct db_sql *sql, const struct db_many *many);

#endif
