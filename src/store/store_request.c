/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with an Idempotency-Key: who begins one first does it, others wait for its answer. started_ms tells the
 * one that holds it from one that took it over after its time. */
#include <string.h>

#include "store/store_internal.h"

struct request_call {
	const struct store_request *request;
	struct db_rows rows;
	enum store_once once;
};

#define REQUEST_COLUMNS   "request, started_ms, expires_ms, status, answer"
#define REQUEST_N_COLUMNS 5

static enum store_once judge(const struct store_request *asked, const struct db_value *row)
{
	if (!slice_is(row[0].text, asked->request_hash))
		return STORE_ONCE_MISMATCH;
	return row[3].i ? STORE_ONCE_DONE : STORE_ONCE_BUSY;
}

static int begin(struct db *db, void *arg)
{
	/* Changes what is there only where its time is over, so a row comes back to one caller alone. */
	static const struct db_sql claim = {
		.text = "INSERT INTO idempotency"
			" (account, name, request, started_ms, expires_ms, status, answer)"
			" VALUES ($1, $2, $3, $4, $5, 0, '') ON CONFLICT (account, name) DO UPDATE "
			"SET"
			" request = excluded.request, started_ms = excluded.started_ms,"
			" expires_ms = excluded.expires_ms, status = 0, answer = ''"
			" WHERE idempotency.expires_ms <= excluded.started_ms RETURNING "
			"started_ms"};
	static const struct db_sql find = {
		.text = "SELECT " REQUEST_COLUMNS
			" FROM idempotency WHERE account = $1 AND name = $2"};
	struct request_call *call = arg;
	const struct store_request *q = call->request;
	int64_t n = db_run(db, &claim, NULL, NULL, db_text(q->account), db_text(q->name),
		db_text(q->request_hash), db_int(q->started_ms), db_int(q->expires_ms));

	call->once = STORE_ONCE_NEW;
	if (n != 0)
		return n < 0 ? (int)n : 0;
	db_rows_reset(&call->rows);
	n = db_run(db, &find, db_rows_add, &call->rows, db_text(q->account), db_text(q->name));
	if (n == 0) /* dropped between the two */
		return -EAGAIN;
	if (n < 0)
		return (int)n;
	call->once = judge(q, call->rows.values);
	return 0;
}

static int check_request(const struct store_request *q, struct err *err)
{
	int r = store_check_account(q->account, err);

	return r < 0 ? r : STORE_CHECK_NAMES(err, q->name, q->request_hash);
}

int store_request_begin(struct store *store, const struct store_request *request,
	store_request_fn fn, void *arg, struct err *err)
{
	struct request_call call = {.request = request, .rows = {.n_columns = REQUEST_N_COLUMNS}};
	const struct db_value *row;
	int r = check_request(request, err);

	if (r == 0)
		r = store_change(store, begin, &call, err);
	if (r == 0 && call.once == STORE_ONCE_DONE) {
		row = call.rows.values;
		r = fn(&(struct store_request){.account = request->account,
			       .name = request->name,
			       .request_hash = row[0].text.p,
			       .started_ms = row[1].i,
			       .expires_ms = row[2].i,
			       .status = row[3].i,
			       .answer = row[4].text.p},
			arg);
	}
	db_rows_done(&call.rows);
	return r < 0 ? r : (int)call.once;
}

static int check_held(int64_t n, struct err *err)
{
	if (n == 0)
		return err_set(err, -ESTALE, "the request took longer than its key is kept");
	return n < 0 ? (int)n : 0;
}

#define HELD " WHERE account = $1 AND name = $2 AND started_ms = $3 AND status = 0"

static int finish(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "UPDATE idempotency SET expires_ms = $4, status = $5, answer = $6" HELD};
	const struct store_request *q = arg;

	return check_held(db_run(db, &sql, NULL, NULL, db_text(q->account), db_text(q->name),
				  db_int(q->started_ms), db_int(q->expires_ms), db_int(q->status),
				  db_text(q->answer)),
		db->err);
}

int store_request_finish(struct store *store, const struct store_request *request, struct err *err)
{
	int r = check_request(request, err);

	if (r == 0 && request->status <= 0)
		r = err_set(err, -EINVAL, "an answer has a status");
	return r < 0 ? r : store_change(store, finish, (void *)request, err);
}

static int drop(struct db *db, void *arg)
{
	static const struct db_sql sql = {.text = "DELETE FROM idempotency" HELD};
	const struct store_request *q = arg;

	return check_held(db_run(db, &sql, NULL, NULL, db_text(q->account), db_text(q->name),
				  db_int(q->started_ms)),
		db->err);
}

int store_request_drop(struct store *store, const struct store_request *request, struct err *err)
{
	int r = check_request(request, err);

	return r < 0 ? r : store_change(store, drop, (void *)request, err);
}
