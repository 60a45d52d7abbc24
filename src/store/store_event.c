/* SPDX-License-Identifier: Apache-2.0 */
/* Lifecycle events and audit rows: two tables of one shape. */
#include <string.h>

#include "store/store_internal.h"

void store_lifecycle_fill_row(struct db_value *values, size_t i, void *arg)
{
	const struct store_event *e = (const struct store_event *)arg + i;

	values[0] = db_text(e->sandbox);
	values[1] = db_int(e->seq);
	values[2] = db_int(e->at_ms);
	values[3] = db_text(e->kind);
	values[4] = db_text(e->json);
}

static void fill_audit(struct db_value *values, size_t i, void *arg)
{
	const struct store_event *e = (const struct store_event *)arg + i;

	values[0] = db_text(e->place);
	values[1] = db_int(e->seq);
	values[2] = db_text(e->account);
	values[3] = db_int(e->at_ms);
	values[4] = db_text(e->kind);
	values[5] = db_text(e->json);
}

static int add_events(struct store *store, const struct store_rows *rows, struct err *err)
{
	const struct store_event *events = rows->arg;

	if (rows->n_rows > STORE_BATCH_MAX)
		return err_set(err, -EINVAL, "%zu events at once: at most %d", rows->n_rows,
			STORE_BATCH_MAX);
	for (size_t i = 0; i < rows->n_rows; i++) {
		int r = STORE_CHECK_NAMES(
			err, events[i].account, events[i].sandbox, events[i].place, events[i].kind);

		if (r < 0)
			return r;
	}
	return rows->n_rows ? store_append(store, rows, err) : 0;
}

int store_lifecycle_add(
	struct store *store, const struct store_event *events, size_t n, struct err *err)
{
	static const struct db_sql sql = {
		.text = "INSERT INTO lifecycle (n, sandbox, seq, account, at_ms, kind, json)"
			" SELECT $1, id, $3, account, $4, $5, $6 FROM sandbox WHERE id = $2"
			" ON CONFLICT DO NOTHING"};

	return add_events(store,
		&(struct store_rows){.counter = "lifecycle",
			.sql = &sql,
			.n_values = STORE_LIFECYCLE_VALUES,
			.n_rows = n,
			.is_index = true,
			.fill = store_lifecycle_fill_row,
			.arg = (void *)events},
		err);
}

int store_audit_add(
	struct store *store, const struct store_event *events, size_t n, struct err *err)
{
	/* What says the same already is no change: its number stays, and nothing is written. */
	static const struct db_sql sql = {
		.text = "INSERT INTO audit (n, place, journal, account, at_ms, kind, json)"
			" VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (place, journal) DO "
			"UPDATE"
			" SET account = excluded.account, at_ms = excluded.at_ms,"
			" kind = excluded.kind, json = excluded.json"
			" WHERE audit.account <> excluded.account OR audit.at_ms <> excluded.at_ms"
			" OR audit.kind <> excluded.kind OR audit.json <> excluded.json"};

	return add_events(store,
		&(struct store_rows){.counter = "audit",
			.sql = &sql,
			.n_values = 6,
			.n_rows = n,
			.fill = fill_audit,
			.arg = (void *)events},
		err);
}

struct page_call {
	const struct store_query *query;
	const struct db_sql *sql;
	store_event_fn fn;
	void *arg;
};

static int on_event(const struct db_value *row, void *arg)
{
	const struct page_call *call = arg;
	struct store_event event = {
		.n = row[0].i,
		.account = row[1].text.p,
		.sandbox = row[2].text.p,
		.seq = row[3].i,
		.at_ms = row[4].i,
		.kind = row[5].text.p,
		.json = row[6].text.p,
	};

	return call->fn(&event, call->arg);
}

#define LIFECYCLE \
	"SELECT n, account, sandbox, seq, at_ms, kind, json FROM lifecycle" \
	" WHERE account = $1 AND sandbox = $2 AND at_ms >= $3 AND at_ms < $4"
#define AUDIT \
	"SELECT n, account, $2, journal, at_ms, kind, json FROM audit" \
	" WHERE account = $1 AND at_ms >= $3 AND at_ms < $4"
#define UP   " AND n > $5 ORDER BY n LIMIT $6"
#define DOWN " AND n < $5 ORDER BY n DESC LIMIT $6"

static int read_page(struct db *db, void *arg)
{
	struct page_call *call = arg;
	const struct store_query *q = call->query;
	int64_t from = q->is_newest_first && !q->cursor ? INT64_MAX : q->cursor;

	return (int)db_run(db, &call->sql[q->is_newest_first], on_event, call, db_text(q->account),
		db_text(q->sandbox), db_int(q->from_ms), db_int(q->to_ms ? q->to_ms : INT64_MAX),
		db_int(from), db_int(q->limit));
}

static int page(struct store *store, const struct store_query *query, const struct db_sql sql[2],
	store_event_fn fn, void *arg, struct err *err)
{
	struct page_call call = {.query = query, .sql = sql, .fn = fn, .arg = arg};
	int r = store_check_account(query->account, err);

	if (r == 0)
		r = store_check_limit(query->limit, STORE_PAGE_MAX, err);
	if (r < 0)
		return r;
	if (query->q)
		return err_set(err, -EINVAL, "only the exec log is searched");
	return store_read(store, read_page, &call, err);
}

int store_lifecycle_page(struct store *store, const struct store_query *query, store_event_fn fn,
	void *arg, struct err *err)
{
	static const struct db_sql sql[2] = {{.text = LIFECYCLE UP}, {.text = LIFECYCLE DOWN}};

	return page(store, query, sql, fn, arg, err);
}

int store_audit_page(struct store *store, const struct store_query *query, store_event_fn fn,
	void *arg, struct err *err)
{
	static const struct db_sql sql[2] = {{.text = AUDIT UP}, {.text = AUDIT DOWN}};

	if (query->sandbox)
		return err_set(err, -EINVAL, "the audit log is an account's, not a sandbox's");
	return page(store, query, sql, fn, arg, err);
}

struct hole_call {
	const char *place;
	int64_t n;
};

static int find_hole(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT coalesce(min(journal), 0) + 1 FROM audit a WHERE place = $1"
			" AND NOT EXISTS (SELECT 1 FROM audit b"
			" WHERE b.place = $1 AND b.journal = a.journal + 1)"};
	struct hole_call *call = arg;

	return (int)db_run(db, &sql, db_row_int, &call->n, db_text(call->place));
}

int64_t store_audit_hole(struct store *store, const char *place, struct err *err)
{
	struct hole_call call = {.place = place};
	int r = STORE_CHECK_NAMES(err, place);

	if (r == 0)
		r = store_read(store, find_hole, &call, err);
	return r < 0 ? r : call.n;
}
