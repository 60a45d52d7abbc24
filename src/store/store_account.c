/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts and their keys. */
#include <string.h>

#include "store/store_internal.h"

struct account_call {
	const struct store_account *account; /* to add */
	const char *id;                      /* to find, or the last one told */
	int limit;
	store_account_fn fn;
	void *arg;
};

static int add_account(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "INSERT INTO account (id, name, max_sandboxes, max_execs, created_ms)"
			" VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"};
	const struct store_account *a = arg;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(a->id), db_text(a->name),
		db_int(a->max_sandboxes), db_int(a->max_execs), db_int(a->created_ms));

	if (n == 0)
		return err_set(db->err, -EEXIST, "there is an account '%s' already", a->name);
	return n < 0 ? (int)n : 0;
}

int store_account_add(struct store *store, const struct store_account *account, struct err *err)
{
	int r = store_check_account(account->id, err);

	if (r == 0)
		r = store_check_account(account->name, err);
	return r < 0 ? r : store_change(store, add_account, (void *)account, err);
}

#define ACCOUNT_COLUMNS "id, name, max_sandboxes, max_execs, created_ms"

static int on_account(const struct db_value *row, void *arg)
{
	const struct account_call *call = arg;
	struct store_account account = {
		.id = row[0].text.p,
		.name = row[1].text.p,
		.max_sandboxes = row[2].i,
		.max_execs = row[3].i,
		.created_ms = row[4].i,
	};

	return call->fn(&account, call->arg);
}

static int get_account(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " ACCOUNT_COLUMNS " FROM account WHERE id = $1"};
	struct account_call *call = arg;
	int64_t n = db_run(db, &sql, on_account, call, db_text(call->id));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such account");
	return n < 0 ? (int)n : 0;
}

int store_account_get(
	struct store *store, const char *id, store_account_fn fn, void *arg, struct err *err)
{
	struct account_call call = {.id = id, .fn = fn, .arg = arg};

	return store_read(store, get_account, &call, err);
}

static int list_accounts(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " ACCOUNT_COLUMNS
			" FROM account WHERE id > $1 ORDER BY id LIMIT $2"};
	struct account_call *call = arg;

	return (int)db_run(db, &sql, on_account, call, db_text(call->id), db_int(call->limit));
}

int store_account_list(struct store *store, const char *after_id, int limit, store_account_fn fn,
	void *arg, struct err *err)
{
	struct account_call call = {.id = after_id, .limit = limit, .fn = fn, .arg = arg};
	int r = store_check_limit(limit, STORE_PAGE_MAX, err);

	return r < 0 ? r : store_read(store, list_accounts, &call, err);
}
