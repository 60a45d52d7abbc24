/* SPDX-License-Identifier: Apache-2.0 */
/* Rates: a row for each name and the second that is counted in it. */
#include "store/store_internal.h"

struct take_call {
	const char *name;
	int64_t second, granted;
	int want, limit;
};

static int take_some(struct db *db, void *arg)
{
	/* A later second begins anew; an earlier one, from a clock that is a little behind, counts in the later; one
	 * that is far behind means that a clock was set back. */
#define IS_NEW "(rate.second < excluded.second OR rate.second > excluded.second + 5)"
#define LEFT   "($4 - rate.used)"
	static const struct db_sql sql = {
		.text = "INSERT INTO rate (name, second, used, granted) VALUES ($1, $2, $3, $3)"
			" ON CONFLICT (name) DO UPDATE SET"
			" second = CASE WHEN " IS_NEW " THEN excluded.second ELSE rate.second END,"
			" used = CASE WHEN " IS_NEW " THEN excluded.used"
			" WHEN excluded.used > " LEFT " THEN $4 ELSE rate.used + excluded.used END,"
			" granted = CASE WHEN " IS_NEW " THEN excluded.used"
			" WHEN rate.used >= $4 THEN 0"
			" WHEN excluded.used > " LEFT " THEN " LEFT " ELSE excluded.used END"
			" RETURNING granted"};
	struct take_call *call = arg;
	int64_t n;

	call->granted = 0;
	n = db_run(db, &sql, db_row_int, &call->granted, db_text(call->name), db_int(call->second),
		db_int(call->want), db_int(call->limit));
	return n < 0 ? (int)n : 0;
}

int store_rate_take(
	struct store *store, const char *name, int64_t second, int want, int limit, struct err *err)
{
	struct take_call call = {.name = name,
		.second = second,
		.want = want < limit ? want : limit,
		.limit = limit};
	int r = STORE_CHECK_NAMES(err, name);

	if (r == 0 && (want < 1 || limit < 1))
		r = err_set(err, -EINVAL,
			"a rate has a limit of 1 or more, and who asks wants 1 or more");
	if (r == 0)
		r = store_change(store, take_some, &call, err);
	return r < 0 ? r : (int)call.granted;
}
