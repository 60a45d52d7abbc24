/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to PostgreSQL: making, ending, and listening on one. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/db_postgres.h"
#include "util/mem.h"

#define READ_MS "10000"
#define LOCK_MS "5000"

void db_postgres_close(struct db *db)
{
	struct postgres *p = db_postgres_of(db);

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
	"SET idle_in_transaction_session_timeout = 30000; SET jit = off;"
	"SET default_transaction_isolation = 'read committed';"
	"SET standard_conforming_strings = on; SET search_path = public";

/* Every list is read along an index that has its order. The server would rather sort all of an account's rows where it
 * has not counted them yet, or guesses what the values of a statement are. */
static const char reading[] = "SET default_transaction_read_only = on; SET enable_sort = off;"
			      "SET plan_cache_mode = force_custom_plan";

static int set_up(struct postgres *p, enum db_use use)
{
	const char *encoding;
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
	encoding = PQparameterStatus(p->conn, "server_encoding");
	if (!encoding || strcmp(encoding, "UTF8") != 0)
		return err_set(p->db.err, -EINVAL,
			"the database is in %s: make one with ENCODING 'UTF8', and name that",
			encoding ? encoding : "no encoding");
	(void)PQsetNoticeReceiver(p->conn, on_notice, NULL);
	r = db_postgres.script(&p->db, settings);
	if (r == 0 && use == DB_READ)
		r = db_postgres.script(&p->db, reading);
	return r;
}

int db_postgres_open(const char *place, enum db_use use, struct db **ret_db, struct err *err)
{
	struct postgres *p = new0(struct postgres);
	int r;

	p->db = (struct db){.driver = &db_postgres, .err = err};
	p->prepared = map_new();
	p->conn = connect_to(place);
	r = set_up(p, use);
	p->db.err = NULL;
	if (r < 0) {
		db_postgres_close(&p->db);
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

int db_postgres_listen(struct db *db, int timeout_ms, char *ret_text, size_t size)
{
	struct postgres *p = db_postgres_of(db);
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
