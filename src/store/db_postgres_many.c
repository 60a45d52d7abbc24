/* SPDX-License-Identifier: Apache-2.0 */
/* One statement for many rows, by libpq's pipeline: all are sent before the first result is read, so a batch costs one
 * way to the server and back and not one for each row. The results of DB_MANY_MAX rows, some 40 bytes each, fit into
 * the socket's buffer: the server never waits for us to read while we wait for it to. */
#include <errno.h>

#include "store/db_postgres.h"

/* How many were sent; what stopped it is in *ret_r. */
static size_t send_rows(
	struct postgres *p, const struct db_sql *sql, const struct db_many *many, int *ret_r)
{
	struct db_value values[DB_VALUES_MAX];
	struct db_postgres_bound bound;

	for (size_t i = 0; i < many->n_rows; i++) {
		*ret_r = db_many_row(&p->db, many, i, values);
		if (*ret_r < 0)
			return i;
		db_postgres_bind(&bound, sql, values, many->n_values);
		if (!PQsendQueryPrepared(p->conn, bound.statement, (int)many->n_values,
			    bound.values, bound.lens, bound.formats, 0)) {
			*ret_r = db_postgres_fail(p, NULL);
			return i;
		}
	}
	return many->n_rows;
}

/* Reads one result and the NULL behind it. The first failure counts; what the server left out because of it does not. */
static void take_result(struct postgres *p, int *ret_changed, int *r)
{
	PGresult *result = PQgetResult(p->conn);

	*ret_changed = 0;
	switch ((int)PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
		*ret_changed = (int)db_postgres_count(result);
		PQclear(result);
		break;
	case PGRES_PIPELINE_ABORTED:
		PQclear(result);
		break;
	default:
		*r = db_postgres_fail(p, result);
	}
	while (!p->db.is_lost && (result = PQgetResult(p->conn)))
		PQclear(result);
}

/* The end of the pipeline, behind which the connection is as before. */
static int take_sync(struct postgres *p)
{
	PGresult *result = PQgetResult(p->conn);

	if (PQresultStatus(result) != PGRES_PIPELINE_SYNC)
		return db_postgres_fail(p, result);
	PQclear(result);
	return PQexitPipelineMode(p->conn) ? 0 : db_postgres_fail(p, NULL);
}

/* Sends all, then reads all: so the pipeline is over whatever happened, or the connection is. */
static int64_t run_pipeline(
	struct postgres *p, const struct db_sql *sql, const struct db_many *many)
{
	int64_t n = 0;
	int sent = 0, taken = 0, later;
	size_t n_sent = send_rows(p, sql, many, &sent);

	if (!p->db.is_lost && !PQpipelineSync(p->conn))
		return db_postgres_fail(p, NULL);
	for (size_t i = 0; i < n_sent && !p->db.is_lost; i++) {
		take_result(p, &many->ret_changed[i], taken ? &later : &taken);
		n += many->ret_changed[i];
	}
	if (p->db.is_lost)
		return -ECONNRESET;
	if (sent == 0)
		sent = take_sync(p);
	else
		(void)take_sync(p); /* where that fails the connection is marked */
	return sent < 0 ? sent : taken < 0 ? taken : n;
}

int64_t db_postgres_many_run(struct db *db, const struct db_sql *sql, const struct db_many *many)
{
	struct postgres *p = db_postgres_of(db);
	struct db_value values[DB_VALUES_MAX];
	int r = db_many_row(db, many, 0, values);

	if (r == 0)
		r = db_postgres_prepare(p, sql, values, many->n_values);
	if (r < 0)
		return r;
	if (!PQenterPipelineMode(p->conn))
		return db_postgres_fail(p, NULL);
	return run_pipeline(p, sql, many);
}
