/* SPDX-License-Identifier: Apache-2.0 */
/* The exec log. */
#include <string.h>

#include "store/search.h"
#include "store/store_internal.h"

#define GRAM 3 /* characters that the indexes of the search are made of */

void store_log_fill_row(struct db_value *values, size_t i, void *arg)
{
	struct store_log_fill *fill = arg;
	const struct store_log_row *row = &fill->rows[i];

	str_reset(&fill->search);
	search_fold(&fill->search, row->search, STORE_SEARCH_MAX);
	values[0] = db_text(row->sandbox);
	values[1] = db_int(row->seq);
	values[2] = db_int(row->id);
	values[3] = db_text(row->exec);
	values[4] = db_text(row->source);
	values[5] = db_text(row->operation);
	values[6] = db_int_or_null(row->has_exit_code, row->exit_code);
	values[7] = db_int(row->output_truncated);
	values[8] = db_int(row->at_ms);
	values[9] = db_int(row->duration_ms);
	values[10] = (struct db_value){.is_text = true, .text = str_slice(&fill->search)};
	values[11] = db_text(row->json);
}

/* A row's account is its sandbox's; a sandbox that is not known, or not any more, has no row. */
static const struct db_sql add_sql = {
	.text = "INSERT INTO log (n, sandbox, seq, id, account, exec, source, operation,"
		" exit_code, output_truncated, at_ms, duration_ms, search, json)"
		" SELECT $1, id, $3, $4, account, $5, $6, $7, $8, $9, $10, $11, $12, $13"
		" FROM sandbox WHERE id = $2 ON CONFLICT DO NOTHING"};

static int check_rows(const struct store_log_row *rows, size_t n, struct err *err)
{
	if (n > STORE_BATCH_MAX)
		return err_set(err, -EINVAL, "%zu rows at once: at most %d", n, STORE_BATCH_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = STORE_CHECK_NAMES(
			err, rows[i].sandbox, rows[i].exec, rows[i].source, rows[i].operation);

		if (r < 0)
			return r;
	}
	return 0;
}

int store_log_add(struct store *store, const struct store_log_row *rows, size_t n, struct err *err)
{
	struct store_log_fill fill = {.rows = rows};
	struct store_rows add = {.counter = "log",
		.sql = &add_sql,
		.n_values = STORE_LOG_VALUES,
		.n_rows = n,
		.is_index = true,
		.fill = store_log_fill_row,
		.arg = &fill};
	int r = check_rows(rows, n, err);

	if (r < 0 || n == 0)
		return r;
	r = store_append(store, &add, err);
	str_done(&fill.search);
	if (r >= 0)
		store_fresh_arrived(store->fresh, rows, n);
	return r;
}

enum search_by {
	BY_NOTHING,
	BY_SCAN, /* too short for an index */
	BY_INDEX,
};

struct page_call {
	const struct store_query *query;
	const char *sandbox, *exec; /* of one row */
	const char *account;
	enum search_by by;
	struct slice pattern;
	const struct db_sql *sql;
	store_log_fn fn;
	void *arg;
};

#define LOG_COLUMNS \
	"l.n, l.sandbox, l.seq, l.id, l.account, l.exec, l.source, l.operation, l.exit_code," \
	" l.output_truncated, l.at_ms, l.duration_ms, l.json"

static int on_row(const struct db_value *row, void *arg)
{
	const struct page_call *call = arg;
	struct store_log_row out = {
		.n = row[0].i,
		.sandbox = row[1].text.p,
		.seq = row[2].i,
		.id = row[3].i,
		.account = row[4].text.p,
		.exec = row[5].text.p,
		.source = row[6].text.p,
		.operation = row[7].text.p,
		.has_exit_code = !row[8].is_null,
		.exit_code = row[8].i,
		.output_truncated = row[9].i != 0,
		.at_ms = row[10].i,
		.duration_ms = row[11].i,
		.json = row[12].text.p,
	};

	return call->fn(&out, call->arg);
}

/* Of the account or of one sandbox, either way round, searched or not: a statement for each, so that each finds its
 * index. $1 and $2 are always both used: PostgreSQL wants to know the type of each. Of a sandbox the account is no term
 * of an index: one without statistics would be read along the account's, past all its other sandboxes. */
#define OF_ACCOUNT  " WHERE l.account = $1 AND $2 = ''"
#define OF_SANDBOX  " WHERE l.account || '' = $1 AND l.sandbox = $2"
#define IN_TIME     " AND l.at_ms >= $3 AND l.at_ms < $4"
#define LOG_UP(n)   " AND " n " > $5 ORDER BY " n " LIMIT $6 OFFSET $7"
#define LOG_DOWN(n) " AND " n " < $5 ORDER BY " n " DESC LIMIT $6 OFFSET $7"
#define LIKE_Q      " AND l.search LIKE $8 ESCAPE '\\'"
#define FROM_LOG    "SELECT " LOG_COLUMNS " FROM log l"
/* CROSS JOIN is SQLite's word for "in this order". */
#define FROM_SEARCH "SELECT " LOG_COLUMNS " FROM log_search f CROSS JOIN log l ON l.n = f.rowid"
#define MATCH_Q     " AND f.log_search MATCH $8"

#define PLAIN(of, order) \
	{ \
		.text = FROM_LOG of IN_TIME order("l.n") \
	}
#define SCANNED(of, order) \
	{ \
		.text = FROM_LOG of IN_TIME LIKE_Q order("l.n") \
	}
#define SEARCHED(of, order) \
	{ \
		.text = FROM_SEARCH of IN_TIME MATCH_Q order("f.rowid"), \
		.postgres = FROM_LOG of IN_TIME LIKE_Q order("l.n") \
	}

static const struct db_sql pages[3][2][2] = {
	[BY_NOTHING] = {{PLAIN(OF_ACCOUNT, LOG_UP), PLAIN(OF_ACCOUNT, LOG_DOWN)},
		{PLAIN(OF_SANDBOX, LOG_UP), PLAIN(OF_SANDBOX, LOG_DOWN)}},
	[BY_SCAN] = {{SCANNED(OF_ACCOUNT, LOG_UP), SCANNED(OF_ACCOUNT, LOG_DOWN)},
		{SCANNED(OF_SANDBOX, LOG_UP), SCANNED(OF_SANDBOX, LOG_DOWN)}},
	[BY_INDEX] = {{SEARCHED(OF_ACCOUNT, LOG_UP), SEARCHED(OF_ACCOUNT, LOG_DOWN)},
		{SEARCHED(OF_SANDBOX, LOG_UP), SEARCHED(OF_SANDBOX, LOG_DOWN)}},
};

static int64_t start_of(const struct store_query *q)
{
	return q->is_newest_first && !q->cursor ? INT64_MAX : q->cursor;
}

/* What is found by the index of the search comes in no order: a few rows are sorted, many are read in order instead. */
static int may_sort(struct db *db)
{
	return db->driver->is_shared ? db->driver->script(db, "SET LOCAL enable_sort = on") : 0;
}

static int read_page(struct db *db, void *arg)
{
	struct page_call *call = arg;
	const struct store_query *q = call->query;
	const struct db_value values[] = {db_text(q->account), db_text(q->sandbox),
		db_int(q->from_ms), db_int(q->to_ms ? q->to_ms : INT64_MAX), db_int(start_of(q)),
		db_int(q->limit), db_int(q->offset), {.is_text = true, .text = call->pattern}};
	size_t n = sizeof(values) / sizeof(values[0]) - (call->pattern.p ? 0 : 1);
	int r = call->by == BY_INDEX ? may_sort(db) : 0;

	if (r < 0)
		return r;
	return (int)db_run_values(db, call->sql, values, n, on_row, call);
}

/* Which way q is searched for, and as what. */
static enum search_by make_pattern(const struct store *store, const char *q, struct str *out)
{
	scoped_str struct str folded = {0};

	if (!q || !*q)
		return BY_NOTHING;
	search_fold(&folded, slice_of(q), (size_t)STORE_NAME_MAX * 3);
	if (store->driver == &db_sqlite && search_len(str_slice(&folded)) >= GRAM) {
		search_add_phrase(out, str_slice(&folded));
		return BY_INDEX;
	}
	search_add_like(out, str_slice(&folded));
	return store->driver->is_shared && search_word_len(str_slice(&folded)) >= GRAM ? BY_INDEX
	                                                                               : BY_SCAN;
}

int store_log_page(struct store *store, const struct store_query *query, store_log_fn fn, void *arg,
	struct err *err)
{
	struct page_call call = {.query = query, .fn = fn, .arg = arg};
	scoped_str struct str pattern = {0};
	bool is_of_sandbox = query->sandbox && *query->sandbox;
	int r = store_check_account(query->account, err);

	if (r == 0)
		r = store_check_limit(query->limit, STORE_PAGE_MAX, err);
	if (r == 0 && (query->offset < 0 || query->offset > STORE_OFFSET_MAX))
		r = err_set(err, -EINVAL, "offset: want 0 to %d", STORE_OFFSET_MAX);
	if (r == 0)
		r = STORE_CHECK_NAMES(err, query->q);
	if (r < 0)
		return r;
	call.by = make_pattern(store, query->q, &pattern);
	call.sql = &pages[call.by][is_of_sandbox][query->is_newest_first];
	call.pattern = str_slice(&pattern);
	r = store_fresh_wait(store->fresh, is_of_sandbox ? query->sandbox : NULL);
	if (r < 0)
		return err_set(err, r,
			"the log is behind: rows of commands that have ended are still to come");
	return store_read(store, read_page, &call, err);
}

static int read_row(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = FROM_LOG
		" WHERE l.sandbox = $1 AND l.account = $2 AND l.exec = $3 LIMIT 1"};
	struct page_call *call = arg;
	int64_t n = db_run(db, &sql, on_row, call, db_text(call->sandbox), db_text(call->account),
		db_text(call->exec));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such exec");
	return n < 0 ? (int)n : 0;
}

int store_log_get(struct store *store, const char *account, const char *sandbox, const char *exec,
	store_log_fn fn, void *arg, struct err *err)
{
	struct page_call call = {
		.account = account, .sandbox = sandbox, .exec = exec, .fn = fn, .arg = arg};
	int r = store_check_account(account, err);

	if (r < 0)
		return r;
	r = store_fresh_wait(store->fresh, sandbox);
	if (r < 0)
		return err_set(err, r,
			"the log is behind: rows of commands that have ended are still to come");
	return store_read(store, read_row, &call, err);
}
