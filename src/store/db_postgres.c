/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL by libpq. A statement is prepared at its first use on a connection; the server ends what takes too long, or
 * waits too long for another's row (db_postgres_open.c). A connection that broke is closed by the pool, which
 * makes a new one. Of the server's words only the first line is passed on: the others hold values. */
#include "store/db_postgres.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_OID 25

/* By SQLSTATE, of which the first two characters are a class. */
static int errno_of(const char *state)
{
	static const struct {
		const char *state;
		int r;
	} known[] = {
		{"57014", -ETIMEDOUT},  /* statement_timeout */
		{"40001", -EAGAIN},     /* serialization failure */
		{"40P01", -EAGAIN},     /* deadlock */
		{"55P03", -EAGAIN},     /* lock_timeout */
		{"23", -EEXIST},        /* constraint */
		{"53100", -ENOSPC},     /* disk full */
		{"53", -EAGAIN},        /* too many connections */
		{"08", -ECONNRESET},    /* connection */
		{"57P", -ECONNRESET},   /* server shuts down, or starts */
		{"25P03", -ECONNRESET}, /* idle in a transaction for too long */
		{"28", -EACCES},        /* authorization */
		{"42501", -EACCES},     /* privilege */
		{"25006", -EROFS},      /* read only: a standby */
		{"XX001", -EUCLEAN},    /* data corrupted */
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(state, known[i].state, strlen(known[i].state)) == 0)
			return known[i].r;
	return -EIO;
}

/* A failure without a SQLSTATE is none of the server's: it was not there to say
 * one, even where libpq has not noticed yet that the connection is broken. */
int db_postgres_fail(struct postgres *p, PGresult *result)
{
	const char *words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	int r = state ? errno_of(state) : -ECONNRESET;

	p->db.is_failed = true;
	if (PQstatus(p->conn) != CONNECTION_OK)
		r = -ECONNRESET;
	p->db.is_lost |= r == -ECONNRESET;
	(void)err_set(p->db.err, r, "database: %s",
		words ? words : "the connection to PostgreSQL was lost: is the server up?");
	PQclear(result);
	return r;
}

int64_t db_postgres_count(PGresult *result)
{
	return strtoll(PQcmdTuples(result), NULL, 10);
}

static int script(struct db *db, const char *text)
{
	struct postgres *p = db_postgres_of(db);
	PGresult *result = PQexec(p->conn, text);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		return db_postgres_fail(p, result);
	PQclear(result);
	return 0;
}

static void name_of(const struct db_sql *sql, char name[DB_POSTGRES_INT_SIZE])
{
	(void)snprintf(name, DB_POSTGRES_INT_SIZE, "%p", (const void *)sql);
}

void db_postgres_bind(struct db_postgres_bound *bound, const struct db_sql *sql,
	const struct db_value *values, size_t n)
{
	if (n > DB_VALUES_MAX)
		abort();
	name_of(sql, bound->statement);
	for (size_t i = 0; i < n; i++) {
		bound->formats[i] = values[i].is_text; /* 1: its bytes as they are, with a length */
		bound->lens[i] = (int)values[i].text.len;
		if (values[i].is_null)
			bound->values[i] = NULL;
		else if (values[i].is_text)
			bound->values[i] = values[i].text.len ? values[i].text.p : "";
		else
			bound->values[i] = bound->ints[i];
		if (!values[i].is_text)
			(void)snprintf(bound->ints[i], DB_POSTGRES_INT_SIZE, "%lld",
				(long long)values[i].i);
	}
}

int db_postgres_prepare(
	struct postgres *p, const struct db_sql *sql, const struct db_value *values, size_t n)
{
	unsigned long long address = (uintptr_t)sql;
	void **slot = map_slot(p->prepared, map_int_key(&address));
	Oid types[DB_VALUES_MAX];
	char name[DB_POSTGRES_INT_SIZE];
	PGresult *result;

	if (*slot)
		return 0;
	if (n > DB_VALUES_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		types[i] = values[i].is_text ? TEXT_OID : DB_POSTGRES_INT_OID;
	name_of(sql, name);
	result = PQprepare(p->conn, name, sql->postgres ? sql->postgres : sql->text, (int)n, types);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		return db_postgres_fail(p, result);
	PQclear(result);
	*slot = p;
	return 0;
}

static void read_row(const PGresult *result, int at, struct db_value *row)
{
	for (int i = 0; i < PQnfields(result); i++) {
		const char *text = PQgetvalue(result, at, i);

		row[i] = (struct db_value){.is_null = PQgetisnull(result, at, i),
			.is_text = PQftype(result, i) != DB_POSTGRES_INT_OID};
		if (row[i].is_text)
			row[i].text = (struct slice){
				.p = text, .len = (size_t)PQgetlength(result, at, i)};
		else
			row[i].i = strtoll(text, NULL, 10);
	}
}

static int64_t give_rows(struct db *db, const PGresult *result, db_row_fn on_row, void *arg)
{
	struct db_value row[DB_VALUES_MAX];
	int n = PQntuples(result), r;

	if (PQnfields(result) > DB_VALUES_MAX)
		abort();
	for (int i = 0; i < n; i++) {
		read_row(result, i, row);
		db_read_texts(db, row, PQnfields(result));
		db->n_told += on_row != NULL;
		r = on_row ? on_row(row, arg) : 0;
		if (r)
			return r < 0 ? r : i + 1;
	}
	return n;
}

static int64_t run(struct db *db, const struct db_sql *sql, const struct db_value *values,
	size_t n_values, db_row_fn on_row, void *arg)
{
	struct postgres *p = db_postgres_of(db);
	struct db_postgres_bound bound;
	PGresult *result;
	int64_t n;
	int r = db_postgres_prepare(p, sql, values, n_values);

	if (r < 0)
		return r;
	db_postgres_bind(&bound, sql, values, n_values);
	result = PQexecPrepared(p->conn, bound.statement, (int)n_values, bound.values, bound.lens,
		bound.formats, 0);
	switch ((int)PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
		n = db_postgres_count(result);
		break;
	case PGRES_TUPLES_OK:
		n = give_rows(db, result, on_row, arg);
		break;
	default:
		return db_postgres_fail(p, result);
	}
	PQclear(result);
	return n;
}

static int begin(struct db *db)
{
	return script(db, "BEGIN");
}

static int commit(struct db *db)
{
	struct postgres *p = db_postgres_of(db);
	PGresult *result = PQexec(p->conn, "COMMIT");

	if (PQresultStatus(result) != PGRES_COMMAND_OK) {
		int r = db_postgres_fail(p, result);

		db->is_commit_unsure = db->is_lost;
		if (db->is_commit_unsure)
			(void)err_set(db->err, r,
				"the connection to PostgreSQL was lost during a commit: it may or "
				"may not be done, so look before you ask again");
		return r;
	}
	/* A transaction in which a statement failed "commits" with this word. */
	if (strcmp(PQcmdStatus(result), "ROLLBACK") == 0) {
		PQclear(result);
		db->is_failed = true;
		return err_set(db->err, -EIO, "database: rolled back");
	}
	PQclear(result);
	return 0;
}

static void rollback(struct db *db)
{
	if (!db->is_lost)
		(void)script(db, "ROLLBACK"); /* where that fails, the connection is marked lost */
}

const struct db_driver db_postgres = {
	.is_shared = true,
	.open = db_postgres_open,
	.close = db_postgres_close,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.run = run,
	.run_many = db_postgres_many_run,
	.script = script,
	.listen = db_postgres_listen,
};
