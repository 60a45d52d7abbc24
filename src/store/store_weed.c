/* SPDX-License-Identifier: Apache-2.0 */
/* Rows held against what they are the index of: those that say something else go. */
#include <stdlib.h>
#include <string.h>

#include "store/store_internal.h"
#include "util/mem.h"

#define SEQ 1 /* where a row's values have it; the sandbox is before it */

struct weed_call {
	const struct db_sql *select, *drop;
	const char *sandbox;
	int64_t after, last;
	/* what there is to be: the same values as those that are selected, but for the last one */
	db_fill_fn fill;
	void *arg;
	size_t n_values, n_rows, at;
	int64_t *bad; /* seqs of those that are to go */
	size_t n_bad, n_room;
};

static bool is_same(const struct db_value *a, const struct db_value *b)
{
	if (a->is_null || b->is_null)
		return a->is_null && b->is_null;
	return a->is_text ? slice_eq(a->text, b->text) : a->i == b->i;
}

static bool says_the_same(const struct db_value *row, const struct db_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_same(&row[i], &values[i]))
			return false;
	return row[n].i == 1; /* the account is the sandbox's */
}

static int on_row(const struct db_value *row, void *arg)
{
	struct weed_call *call = arg;
	struct db_value values[DB_VALUES_MAX];

	for (; call->at < call->n_rows; call->at++) {
		call->fill(values, call->at, call->arg);
		if (values[SEQ].i >= row[SEQ].i)
			break;
	}
	if (call->at < call->n_rows && says_the_same(row, values, call->n_values))
		return 0;
	if (call->n_bad == call->n_room) {
		call->n_room = call->n_room ? 2 * call->n_room : 64;
		call->bad = mem_grow(call->bad, call->n_room, sizeof(*call->bad));
	}
	call->bad[call->n_bad++] = row[SEQ].i;
	return 0;
}

static int weed(struct db *db, void *arg)
{
	struct weed_call *call = arg;
	int64_t n;

	call->at = call->n_bad = 0;
	n = db_run(db, call->select, on_row, call, db_text(call->sandbox), db_int(call->after),
		db_int(call->last));
	for (size_t i = 0; n >= 0 && i < call->n_bad; i++)
		n = db_run(
			db, call->drop, NULL, NULL, db_text(call->sandbox), db_int(call->bad[i]));
	return n < 0 ? (int)n : (int)call->n_bad;
}

static int weed_rows(struct store *store, struct weed_call *call, struct err *err)
{
	int r = STORE_CHECK_NAMES(err, call->sandbox);

	if (r == 0)
		r = store_change(store, weed, call, err);
	free(call->bad);
	return r;
}

/* The last column: 1 where the row has the account of its sandbox. */
#define ROWS(table, columns) \
	"SELECT " columns ", CAST(CASE WHEN t.account = s.account THEN 1 ELSE 0 END AS BIGINT)" \
	" FROM " table " t JOIN sandbox s ON s.id = t.sandbox" \
	" WHERE t.sandbox = $1 AND t.seq > $2 AND t.seq <= $3 ORDER BY t.seq"

int store_log_weed(struct store *store, const char *sandbox, int64_t after, int64_t last,
	const struct store_log_row *rows, size_t n, struct err *err)
{
#define LOG_COLUMNS \
	"t.sandbox, t.seq, t.id, t.exec, t.source, t.operation, t.exit_code, t.output_truncated," \
	" t.at_ms, t.duration_ms, t.search, t.json"
	static const struct db_sql select = {.text = ROWS("log", LOG_COLUMNS)};
	static const struct db_sql drop = {
		.text = "DELETE FROM log WHERE sandbox = $1 AND seq = $2"};
	struct store_log_fill fill = {.rows = rows};
	struct weed_call call = {.select = &select,
		.drop = &drop,
		.sandbox = sandbox,
		.after = after,
		.last = last,
		.fill = store_log_fill_row,
		.arg = &fill,
		.n_values = STORE_LOG_VALUES,
		.n_rows = n};
	int r = weed_rows(store, &call, err);

	str_done(&fill.search);
	return r;
}

int store_lifecycle_weed(struct store *store, const char *sandbox, int64_t after, int64_t last,
	const struct store_event *events, size_t n, struct err *err)
{
#define LIFECYCLE_COLUMNS "t.sandbox, t.seq, t.at_ms, t.kind, t.json"
	static const struct db_sql select = {.text = ROWS("lifecycle", LIFECYCLE_COLUMNS)};
	static const struct db_sql drop = {
		.text = "DELETE FROM lifecycle WHERE sandbox = $1 AND seq = $2"};
	struct weed_call call = {.select = &select,
		.drop = &drop,
		.sandbox = sandbox,
		.after = after,
		.last = last,
		.fill = store_lifecycle_fill_row,
		.arg = (void *)events,
		.n_values = STORE_LIFECYCLE_VALUES,
		.n_rows = n};

	return weed_rows(store, &call, err);
}
