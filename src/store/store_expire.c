/* SPDX-License-Identifier: Apache-2.0 */
/* What is old goes, in steps that hold nobody up for long. */
#include "store/store_internal.h"

/* $1 is the time before which it is old, $2 how many of a table go in one step. */
#define OLD(table, key, when) \
	{ \
		.text = "DELETE FROM " table " WHERE (" key ") IN (SELECT " key " FROM " table \
			" WHERE " when " LIMIT $2)" \
	}
#define STEP 1000

struct expire_call {
	const struct store_expiry *expiry;
	int64_t n;
};

static int expire_step(struct db *db, void *arg)
{
	static const struct db_sql token = OLD("token", "hash", "expires_ms <= $1");
	static const struct db_sql request =
		OLD("idempotency", "account, name", "expires_ms <= $1");
	static const struct db_sql rate = OLD("rate", "name", "second < $1 / 1000 - 60");
	static const struct db_sql audit = OLD("audit", "n", "at_ms < $1");
	static const struct db_sql metric = OLD("metric", "sandbox, at_ms", "at_ms < $1");
	static const struct db_sql delivery =
		OLD("delivery", "n", "created_ms < $1 AND state <> 'waiting'");
	static const struct db_sql tombstone = OLD("tombstone", "sandbox", "at_ms < $1");
	struct expire_call *call = arg;
	const struct {
		const struct db_sql *sql;
		int64_t before_ms;
	} steps[] = {
		{&token, call->expiry->now_ms},
		{&request, call->expiry->now_ms},
		{&rate, call->expiry->now_ms},
		{&audit, call->expiry->audit_before_ms},
		{&metric, call->expiry->metrics_before_ms},
		{&delivery, call->expiry->deliveries_before_ms},
		{&tombstone, call->expiry->tombstones_before_ms},
	};

	call->n = 0;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int64_t n = db_run(
			db, steps[i].sql, NULL, NULL, db_int(steps[i].before_ms), db_int(STEP));

		if (n < 0)
			return (int)n;
		call->n += n;
	}
	return 0;
}

int64_t store_expire(struct store *store, const struct store_expiry *expiry, struct err *err)
{
	struct expire_call call = {.expiry = expiry};
	int r = store_change(store, expire_step, &call, err);

	return r < 0 ? r : call.n;
}
