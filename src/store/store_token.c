/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that are good once. */
#include <string.h>

#include "store/store_internal.h"
#include "store/store_key.h"

static int add_token(struct db *db, void *arg)
{
	/* For a sandbox of the key's own account. */
	static const struct db_sql sql = {
		.text = "INSERT INTO token (hash, sandbox, api_key, expires_ms)"
			" SELECT $1, s.id, k.id, $4 FROM sandbox s JOIN api_key k ON k.account = "
			"s.account"
			" WHERE s.id = $2 AND k.id = $3 AND k.revoked_ms = 0"};
	const struct store_token *t = arg;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(t->hash), db_text(t->sandbox),
		db_text(t->api_key), db_int(t->expires_ms));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such sandbox, or no such key");
	return n < 0 ? (int)n : 0;
}

int store_token_add(struct store *store, const struct store_token *token, struct err *err)
{
	int r = STORE_CHECK_NAMES(err, token->hash, token->sandbox, token->api_key);

	return r < 0 ? r : store_change(store, add_token, (void *)token, err);
}

struct use_call {
	const char *hash, *sandbox;
	int64_t now_ms;
	struct db_rows key, row;
};

/* One statement spends it: of those that try at once the database lets one remove the row. Reading the key afterwards
 * is in the same transaction. */
static int use_token(struct db *db, void *arg)
{
	static const struct db_sql spend = {
		.text = "DELETE FROM token WHERE hash = $1 AND sandbox = $2 AND expires_ms > $3"
			" RETURNING api_key"};
	static const struct db_sql find = {
		.text = "SELECT " STORE_KEY_COLUMNS
			" FROM api_key WHERE id = $1 AND revoked_ms = 0"};
	struct use_call *call = arg;
	int64_t n;

	db_rows_reset(&call->key);
	db_rows_reset(&call->row);
	n = db_run(db, &spend, db_rows_add, &call->key, db_text(call->hash), db_text(call->sandbox),
		db_int(call->now_ms));
	if (n > 0) /* spent also where the key was revoked: nobody gets anything for it later */
		n = db_run(db, &find, db_rows_add, &call->row,
			(struct db_value){.is_text = true, .text = call->key.values[0].text});
	return n < 0 ? (int)n : 0;
}

int store_token_use(struct store *store, const char *hash, const char *sandbox, int64_t now_ms,
	store_key_fn fn, void *arg, struct err *err)
{
	struct use_call call = {.hash = hash,
		.sandbox = sandbox,
		.now_ms = now_ms,
		.key = {.n_columns = 1},
		.row = {.n_columns = STORE_KEY_N_COLUMNS}};
	int r = store_change(store, use_token, &call, err);

	if (r == 0 && call.row.n == 0)
		r = err_set(err, -ENOENT,
			"the token is not good: used, too old, or for something else");
	else if (r == 0)
		r = store_key_tell(call.row.values, fn, arg);
	db_rows_done(&call.key);
	db_rows_done(&call.row);
	return r;
}
