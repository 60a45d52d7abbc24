/* SPDX-License-Identifier: Apache-2.0 */
/* How many there are of what, for whoever looks after the server. */
#include "store/store_internal.h"

struct count_call {
	const struct db_sql *sql;
	store_count_fn fn;
	void *arg;
};

static int on_count(const struct db_value *row, void *arg)
{
	const struct count_call *call = arg;

	return call->fn(row[0].text.p, row[1].i, call->arg);
}

static int count(struct db *db, void *arg)
{
	struct count_call *call = arg;
	int64_t n = db_run(db, call->sql, on_count, call);

	return n < 0 ? (int)n : 0;
}

int store_sandbox_states(struct store *store, store_count_fn fn, void *arg, struct err *err)
{
	static const struct db_sql sql = {
		.text = "SELECT state, count(*) FROM sandbox WHERE ended_ms = 0"
			" GROUP BY state ORDER BY state"};
	struct count_call call = {&sql, fn, arg};

	return store_read(store, count, &call, err);
}

int store_delivery_states(struct store *store, store_count_fn fn, void *arg, struct err *err)
{
	static const struct db_sql sql = {
		.text = "SELECT state, count(*) FROM delivery GROUP BY state ORDER BY state"};
	struct count_call call = {&sql, fn, arg};

	return store_read(store, count, &call, err);
}
