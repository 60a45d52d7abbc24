/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of what sandboxes use. */
#include "store/store_internal.h"

struct metric_call {
	const struct store_metric_query *query;
	store_metric_fn fn;
	void *arg;
};

static void fill_metric(struct db_value *values, size_t i, void *arg)
{
	const struct store_metric *m = (const struct store_metric *)arg + i;

	values[0] = db_text(m->sandbox);
	values[1] = db_int(m->at_ms);
	values[2] = db_text(m->json);
}

int store_metric_add(
	struct store *store, const struct store_metric *metrics, size_t n, struct err *err)
{
	static const struct db_sql sql = {
		.text = "INSERT INTO metric (sandbox, at_ms, json)"
			" SELECT id, $2, $3 FROM sandbox WHERE id = $1 ON CONFLICT DO NOTHING"};
	struct store_rows rows = {.sql = &sql,
		.n_values = 3,
		.n_rows = n,
		.is_index = true,
		.fill = fill_metric,
		.arg = (void *)metrics};

	if (n > STORE_BATCH_MAX)
		return err_set(err, -EINVAL, "%zu samples at once: at most %d", n, STORE_BATCH_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = STORE_CHECK_NAMES(err, metrics[i].sandbox);

		if (r < 0)
			return r;
	}
	return n ? store_append(store, &rows, err) : 0;
}

static int on_metric(const struct db_value *row, void *arg)
{
	const struct metric_call *call = arg;
	struct store_metric metric = {
		.sandbox = call->query->sandbox, .at_ms = row[0].i, .json = row[1].text.p};

	return call->fn(&metric, call->arg);
}

static int read_page(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT at_ms, json FROM metric WHERE sandbox = $2"
			" AND EXISTS (SELECT 1 FROM sandbox WHERE id = $2 AND account = $1)"
			" AND at_ms > $3 AND at_ms <= $4 ORDER BY at_ms LIMIT $5"};
	struct metric_call *call = arg;
	const struct store_metric_query *q = call->query;

	return (int)db_run(db, &sql, on_metric, call, db_text(q->account), db_text(q->sandbox),
		db_int(q->after_ms), db_int(q->to_ms ? q->to_ms : INT64_MAX), db_int(q->limit));
}

int store_metric_page(struct store *store, const struct store_metric_query *query,
	store_metric_fn fn, void *arg, struct err *err)
{
	struct metric_call call = {.query = query, .fn = fn, .arg = arg};
	int r = store_check_account(query->account, err);

	if (r == 0)
		r = store_check_limit(query->limit, STORE_PAGE_MAX, err);
	return r < 0 ? r : store_read(store, read_page, &call, err);
}
