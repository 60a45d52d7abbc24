/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of what sandboxes use. */
#include "store/store_internal.h"

struct metric_call {
	const struct store_metric *metrics; /* to add */
	size_t n;
	const char *sandbox;
	int64_t after_ms, to_ms;
	int limit;
	store_metric_fn fn;
	void *arg;
};

static int add_metrics(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "INSERT INTO metric (sandbox, at_ms, json)"
			" SELECT id, $2, $3 FROM sandbox WHERE id = $1 ON CONFLICT DO NOTHING"};
	const struct metric_call *call = arg;
	int64_t n, added = 0;

	for (size_t i = 0; i < call->n; i++) {
		const struct store_metric *m = &call->metrics[i];

		n = db_run(db, &sql, NULL, NULL, db_text(m->sandbox), db_int(m->at_ms),
			db_text(m->json));
		if (n < 0)
			return (int)n;
		added += n;
	}
	return (int)added;
}

int store_metric_add(
	struct store *store, const struct store_metric *metrics, size_t n, struct err *err)
{
	struct metric_call call = {.metrics = metrics, .n = n};

	if (n > STORE_BATCH_MAX)
		return err_set(err, -EINVAL, "%zu samples at once: at most %d", n, STORE_BATCH_MAX);
	return n ? store_append(store, add_metrics, &call, err) : 0;
}

static int on_metric(const struct db_value *row, void *arg)
{
	const struct metric_call *call = arg;
	struct store_metric metric = {
		.sandbox = call->sandbox, .at_ms = row[0].i, .json = row[1].text.p};

	return call->fn(&metric, call->arg);
}

static int read_page(struct db *db, void *arg)
{
	static const struct db_sql sql = {.text = "SELECT at_ms, json FROM metric"
						  " WHERE sandbox = $1 AND at_ms > $2 AND at_ms <= "
						  "$3 ORDER BY at_ms LIMIT $4"};
	struct metric_call *call = arg;

	return (int)db_run(db, &sql, on_metric, call, db_text(call->sandbox),
		db_int(call->after_ms), db_int(call->to_ms ? call->to_ms : INT64_MAX),
		db_int(call->limit));
}

int store_metric_page(struct store *store, const struct store_metric *behind, int64_t to_ms,
	int limit, store_metric_fn fn, void *arg, struct err *err)
{
	struct metric_call call = {.sandbox = behind->sandbox,
		.after_ms = behind->at_ms,
		.to_ms = to_ms,
		.limit = limit,
		.fn = fn,
		.arg = arg};
	int r = store_check_limit(limit, STORE_PAGE_MAX, err);

	return r < 0 ? r : store_read(store, read_page, &call, err);
}
