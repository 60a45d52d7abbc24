/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL by libpq. A statement is prepared at its first use on a connection; the server ends what takes longer
 * than READ_MS, or waits longer than LOCK_MS for another's row. A connection that broke is closed by the pool, which
 * makes a new one. Of the server's words only the first line is passed on: the others hold values. */
#include "store/db.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "util/scoped.h"

#define MAX_VALUES 16
#define INT_OID    20 /* int8 */
#define TEXT_OID   25
#define INT_SIZE   24

#define READ_MS    "10000"
#define LOCK_MS    "5000"

struct postgres {
	struct db db;
	PGconn *conn;
	struct map *prepared; /* address of the db_sql to itself */
};

static struct postgres *postgres_of(struct db *db)
{
	return (struct postgres *)db;
}

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
		{"XX001", -EUCLEAN},    /* data corrupted */
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(state, known[i].state, strlen(known[i].state)) == 0)
			return known[i].r;
	return -EIO;
}

/* Takes the result, which may be NULL. A failure without a SQLSTATE is none of the server's: it was not there to say
 * one, even where libpq has not noticed yet that the connection is broken. */
static int fail(struct postgres *p, PGresult *result)
{
	const char *words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	int r = state ? errno_of(state) : -ECONNRESET;

	p->db.is_failed = true;
	if (PQstatus(p->conn) != CONNECTION_OK)
		r = -ECONNRESET;
	p->db.is_lost |= r == -ECONNRESET;
	(void)err_set(p->db.err, r, "database: %s", words ? words : "the server is gone");
	PQclear(result);
	return r;
}

static int64_t count_of(PGresult *result)
{
	return strtoll(PQcmdTuples(result), NULL, 10);
}

static int script(struct db *db, const char *text)
{
	struct postgres *p = postgres_of(db);
	PGresult *result = PQexec(p->conn, text);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		return fail(p, result);
	PQclear(result);
	return 0;
}

static void name_of(const struct db_sql *sql, char name[INT_SIZE])
{
	(void)snprintf(name, INT_SIZE, "%p", (const void *)sql);
}

static int prepare(
	struct postgres *p, const struct db_sql *sql, const struct db_value *values, size_t n)
{
	unsigned long long address = (uintptr_t)sql;
	void **slot = map_slot(p->prepared, map_int_key(&address));
	Oid types[MAX_VALUES];
	char name[INT_SIZE];
	PGresult *result;

	if (*slot)
		return 0;
	for (size_t i = 0; i < n; i++)
		types[i] = values[i].is_text ? TEXT_OID : INT_OID;
	name_of(sql, name);
	result = PQprepare(p->conn, name, sql->postgres ? sql->postgres : sql->text, (int)n, types);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		return fail(p, result);
	PQclear(result);
	*slot = p;
	return 0;
}

static void read_row(const PGresult *result, int at, struct db_value *row)
{
	for (int i = 0; i < PQnfields(result); i++) {
		const char *text = PQgetvalue(result, at, i);

		row[i] = (struct db_value){.is_null = PQgetisnull(result, at, i),
			.is_text = PQftype(result, i) != INT_OID};
		if (row[i].is_text)
			row[i].text = (struct slice){
				.p = text, .len = (size_t)PQgetlength(result, at, i)};
		else
			row[i].i = strtoll(text, NULL, 10);
	}
}

static int64_t give_rows(struct db *db, const PGresult *result, db_row_fn on_row, void *arg)
{
	struct db_value row[MAX_VALUES];
	int n = PQntuples(result), r;

	if (PQnfields(result) > MAX_VALUES)
		abort();
	for (int i = 0; i < n; i++) {
		read_row(result, i, row);
		db->n_told += on_row != NULL;
		r = on_row ? on_row(row, arg) : 0;
		if (r)
			return r < 0 ? r : i + 1;
	}
	return n;
}

/* Texts need a NUL behind them and most have one, but a slice promises none. */
static PGresult *execute(
	struct postgres *p, const struct db_sql *sql, const struct db_value *values, size_t n)
{
	char ints[MAX_VALUES][INT_SIZE], name[INT_SIZE];
	char *copies[MAX_VALUES] = {NULL};
	const char *texts[MAX_VALUES];
	PGresult *result;

	for (size_t i = 0; i < n; i++) {
		if (values[i].is_text)
			copies[i] = mem_copy(values[i].text.p, values[i].text.len);
		else
			(void)snprintf(ints[i], INT_SIZE, "%lld", (long long)values[i].i);
		texts[i] = values[i].is_null ? NULL : values[i].is_text ? copies[i] : ints[i];
	}
	name_of(sql, name);
	result = PQexecPrepared(p->conn, name, (int)n, texts, NULL, NULL, 0);
	for (size_t i = 0; i < n; i++)
		free(copies[i]);
	return result;
}

static int64_t run(struct db *db, const struct db_sql *sql, const struct db_value *values,
	size_t n_values, db_row_fn on_row, void *arg)
{
	struct postgres *p = postgres_of(db);
	PGresult *result;
	int64_t n;
	int r;

	if (n_values > MAX_VALUES)
		abort();
	r = prepare(p, sql, values, n_values);
	if (r < 0)
		return r;
	result = execute(p, sql, values, n_values);
	switch ((int)PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
		n = count_of(result);
		break;
	case PGRES_TUPLES_OK:
		n = give_rows(db, result, on_row, arg);
		break;
	default:
		return fail(p, result);
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
	struct postgres *p = postgres_of(db);
	PGresult *result = PQexec(p->conn, "COMMIT");

	if (PQresultStatus(result) != PGRES_COMMAND_OK) {
		int r = fail(p, result);

		db->is_commit_unsure = db->is_lost;
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

static void close_conn(struct db *db)
{
	struct postgres *p = postgres_of(db);

	PQfinish(p->conn);
	map_free(p->prepared);
	free(p);
}

/* A notice ("relation exists already, skipping") is not for stderr. */
static void on_notice(void *arg, const PGresult *result)
{
}

/* Behind what the URL says, which so cannot change them; the others are there for servers that vanish without a word. */
static PGconn *connect_to(const char *place)
{
	static const char *const names[] = {"dbname", "client_encoding", "application_name",
		"connect_timeout", "tcp_user_timeout", "keepalives_idle", NULL};
	const char *values[] = {place, "UTF8", "cloche", "5", "15000", "15", NULL};

	return PQconnectdbParams(names, values, 1);
}

static const char settings[] =
	"SET statement_timeout = " READ_MS "; SET lock_timeout = " LOCK_MS ";"
	"SET idle_in_transaction_session_timeout = 30000;"
	"SET default_transaction_isolation = 'read committed';"
	"SET standard_conforming_strings = on; SET search_path = public";

static int set_up(struct postgres *p, enum db_use use)
{
	int r;

	if (PQstatus(p->conn) != CONNECTION_OK) {
		char words[ERR_MAX / 2];

		(void)snprintf(words, sizeof(words), "%s", PQerrorMessage(p->conn));
		words[strcspn(words, "\n")] = 0;
		p->db.is_lost = true;
		return err_set(p->db.err, -ECONNREFUSED,
			"the database cannot be reached: %s (is the server up, and --database "
			"right?)",
			words);
	}
	(void)PQsetNoticeReceiver(p->conn, on_notice, NULL);
	r = script(&p->db, settings);
	if (r == 0 && use == DB_READ)
		r = script(&p->db, "SET default_transaction_read_only = on");
	return r;
}

static int open_conn(const char *place, enum db_use use, struct db **ret_db, struct err *err)
{
	struct postgres *p = new0(struct postgres);
	int r;

	p->db = (struct db){.driver = &db_postgres, .err = err};
	p->prepared = map_new();
	p->conn = connect_to(place);
	r = set_up(p, use);
	p->db.err = NULL;
	if (r < 0) {
		close_conn(&p->db);
		return r;
	}
	*ret_db = &p->db;
	return 0;
}

static int next_notification(struct postgres *p, char *ret_text, size_t size)
{
	PGnotify *said = PQnotifies(p->conn);

	if (!said)
		return 0;
	(void)snprintf(ret_text, size, "%s", said->extra);
	PQfreemem(said);
	return 1;
}

static int listen_to(struct db *db, int timeout_ms, char *ret_text, size_t size)
{
	struct postgres *p = postgres_of(db);
	struct pollfd fd = {.fd = PQsocket(p->conn), .events = POLLIN};

	if (next_notification(p, ret_text, size))
		return 1;
	if (poll(&fd, 1, timeout_ms) <= 0)
		return 0;
	if (!PQconsumeInput(p->conn) || PQstatus(p->conn) != CONNECTION_OK) {
		db->is_lost = true;
		return -ECONNRESET;
	}
	return next_notification(p, ret_text, size);
}

const struct db_driver db_postgres = {
	.is_shared = true,
	.open = open_conn,
	.close = close_conn,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.run = run,
	.script = script,
	.listen = listen_to,
};
