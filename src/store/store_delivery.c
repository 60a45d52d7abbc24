/* SPDX-License-Identifier: Apache-2.0 */
/* Deliveries of webhooks. A claim is a lease: who claims is alone with it until due_ms, which the claim moves on, and
 * its number of attempt says whether an outcome comes too late. */
#include <string.h>

#include "store/store_internal.h"

static void fill_delivery(struct db_value *values, size_t i, void *arg)
{
	const struct store_delivery *d = (const struct store_delivery *)arg + i;

	values[0] = db_text(d->id);
	values[1] = db_text(d->account);
	values[2] = db_text(d->webhook);
	values[3] = db_int(d->due_ms);
	values[4] = db_int(d->created_ms);
	values[5] = db_text(d->json);
}

int store_delivery_add(
	struct store *store, const struct store_delivery *deliveries, size_t n, struct err *err)
{
	static const struct db_sql sql = {
		.text = "INSERT INTO delivery (n, id, account, webhook, state, attempt, due_ms,"
			" created_ms, result, json)"
			" VALUES ($1, $2, $3, $4, 'waiting', 0, $5, $6, '', $7)"
			" ON CONFLICT DO NOTHING"};
	struct store_rows rows = {.counter = "delivery",
		.sql = &sql,
		.n_values = 6,
		.n_rows = n,
		.fill = fill_delivery,
		.arg = (void *)deliveries};

	if (n > STORE_BATCH_MAX)
		return err_set(
			err, -EINVAL, "%zu deliveries at once: at most %d", n, STORE_BATCH_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = store_check_account(deliveries[i].account, err);

		if (r == 0)
			r = STORE_CHECK_NAMES(err, deliveries[i].id, deliveries[i].webhook);
		if (r < 0)
			return r;
	}
	return n ? store_append(store, &rows, err) : 0;
}

#define DELIVERY_COLUMNS   "n, id, account, webhook, state, result, json, attempt, due_ms, created_ms"
#define DELIVERY_N_COLUMNS 10

static int tell(const struct db_value *row, store_delivery_fn fn, void *arg)
{
	struct store_delivery d = {
		.n = row[0].i,
		.id = row[1].text.p,
		.account = row[2].text.p,
		.webhook = row[3].text.p,
		.state = row[4].text.p,
		.result = row[5].text.p,
		.json = row[6].text.p,
		.attempt = row[7].i,
		.due_ms = row[8].i,
		.created_ms = row[9].i,
	};

	return fn(&d, arg);
}

struct claim_call {
	const struct store_claim *claim;
	struct db_rows rows;
};

static int claim(struct db *db, void *arg)
{
#define CLAIM \
	"UPDATE delivery SET attempt = attempt + 1, due_ms = $1 + $2 WHERE n IN" \
	" (SELECT n FROM delivery"
#define DUE  " WHERE state = 'waiting' AND due_ms <= $1 AND "
#define NEXT " = 0 ORDER BY due_ms, n LIMIT $3"
	static const struct db_sql sql = {
		.text = CLAIM " INDEXED BY delivery_due" DUE "instr($4, webhook)" NEXT
			      ") RETURNING " DELIVERY_COLUMNS,
		.postgres = CLAIM DUE "strpos($4, webhook)" NEXT
				      " FOR UPDATE SKIP LOCKED) RETURNING " DELIVERY_COLUMNS,
	};
	struct claim_call *call = arg;
	const struct store_claim *c = call->claim;

	db_rows_reset(&call->rows);
	return (int)db_run(db, &sql, db_rows_add, &call->rows, db_int(c->now_ms),
		db_int(c->lease_ms), db_int(c->limit), db_text(c->but));
}

int store_delivery_claim(struct store *store, const struct store_claim *which, store_delivery_fn fn,
	void *arg, struct err *err)
{
	struct claim_call call = {.claim = which, .rows = {.n_columns = DELIVERY_N_COLUMNS}};
	int r = store_check_limit(which->limit, STORE_PAGE_MAX, err), told = 0;

	if (r == 0)
		r = store_change(store, claim, &call, err);
	for (size_t i = 0; r >= 0 && told == 0 && i < call.rows.n; i++)
		told = tell(call.rows.values + i * DELIVERY_N_COLUMNS, fn, arg);
	db_rows_done(&call.rows);
	return told < 0 ? told : r;
}

static int finish(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "UPDATE delivery SET state = $3, due_ms = $4, result = $5"
			" WHERE id = $1 AND attempt = $2 AND state = 'waiting'"};
	const struct store_delivery *d = arg;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(d->id), db_int(d->attempt),
		db_text(d->state), db_int(d->due_ms), db_text(d->result));

	if (n == 0)
		return err_set(
			db->err, -ESTALE, "the attempt is not the delivery's last one any more");
	return n < 0 ? (int)n : 0;
}

int store_delivery_finish(
	struct store *store, const struct store_delivery *outcome, struct err *err)
{
	static const char *const states[] = {"waiting", "sent", "failed"};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (outcome->state && strcmp(outcome->state, states[i]) == 0)
			return store_change(store, finish, (void *)outcome, err);
	return err_set(err, -EINVAL, "a delivery is waiting, sent or failed");
}

struct page_call {
	const char *account, *webhook, *id;
	int64_t before, due_ms;
	int limit;
	store_delivery_fn fn;
	void *arg;
};

static int deliver_again(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "UPDATE delivery SET state = 'waiting', due_ms = $4"
			" WHERE id = $1 AND account = $2 AND webhook = $3 AND state <> 'waiting'"};
	static const struct db_sql look = {.text = "SELECT count(*) FROM delivery WHERE id = $1"
						   " AND account = $2 AND webhook = $3"};
	const struct page_call *call = arg;
	int64_t is_there = 0;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(call->id), db_text(call->account),
		db_text(call->webhook), db_int(call->due_ms));

	if (n != 0)
		return n < 0 ? (int)n : 0;
	n = db_run(db, &look, db_row_int, &is_there, db_text(call->id), db_text(call->account),
		db_text(call->webhook));
	if (n < 0)
		return (int)n;
	return is_there ? err_set(db->err, -EBUSY, "the delivery still waits to be sent")
	                : err_set(db->err, -ENOENT, "there is no such delivery");
}

int store_delivery_again(struct store *store, const struct store_delivery *which, struct err *err)
{
	const char *account = which->account;
	struct page_call call = {.account = account,
		.webhook = which->webhook,
		.id = which->id,
		.due_ms = which->due_ms};
	int r = store_check_account(account, err);

	return r < 0 ? r : store_change(store, deliver_again, &call, err);
}

static int on_delivery(const struct db_value *row, void *arg)
{
	const struct page_call *call = arg;

	return tell(row, call->fn, call->arg);
}

static int read_page(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " DELIVERY_COLUMNS " FROM delivery"
			" WHERE account = $1 AND webhook = $2 AND n < $3 ORDER BY n DESC LIMIT $4"};
	struct page_call *call = arg;

	return (int)db_run(db, &sql, on_delivery, call, db_text(call->account),
		db_text(call->webhook), db_int(call->before ? call->before : INT64_MAX),
		db_int(call->limit));
}

int store_delivery_page(struct store *store, const struct store_delivery *behind, int limit,
	store_delivery_fn fn, void *arg, struct err *err)
{
	struct page_call call = {.account = behind->account,
		.webhook = behind->webhook,
		.before = behind->n,
		.limit = limit,
		.fn = fn,
		.arg = arg};
	int r = store_check_account(behind->account, err);

	if (r == 0)
		r = store_check_limit(limit, STORE_PAGE_MAX, err);
	return r < 0 ? r : store_read(store, read_page, &call, err);
}
