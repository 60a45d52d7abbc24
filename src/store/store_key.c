/* SPDX-License-Identifier: Apache-2.0 */
/* Keys. The key itself never comes here, only its hash. */
#include <string.h>

#include "store/store_internal.h"
#include "store/store_key.h"

struct key_call {
	const struct store_key *key; /* to add */
	const char *account, *id, *hash;
	int64_t at_ms;
	int limit;
	store_key_fn fn;
	void *arg;
};

static int add_key(struct db *db, void *arg)
{
	/* Of the account itself, so that one that is not there adds nothing. */
	static const struct db_sql sql = {
		.text = "INSERT INTO api_key"
			" (id, account, hash, prefix, name, role, rate_limit, created_ms, used_ms, "
			"revoked_ms)"
			" SELECT $1, id, $3, $4, $5, $6, $7, $8, 0, 0 FROM account WHERE id = $2"
			" ON CONFLICT DO NOTHING"};
	const struct store_key *k = arg;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(k->id), db_text(k->account),
		db_text(k->hash), db_text(k->prefix), db_text(k->name), db_text(k->role),
		db_int(k->rate_limit), db_int(k->created_ms));

	if (n == 0)
		return err_set(db->err, -EEXIST, "there is no such account, or the key is taken");
	return n < 0 ? (int)n : 0;
}

static int check_role(const char *role, struct err *err)
{
	static const char *const roles[] = {"admin", "member", "auditor"};

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (role && strcmp(role, roles[i]) == 0)
			return 0;
	return err_set(
		err, -EINVAL, "role '%.20s': want admin, member or auditor", role ? role : "");
}

struct first_call {
	const struct store_key *key;
	int (*tell)(void *arg, struct err *err);
	void *arg;
};

static int add_first(struct db *db, void *arg)
{
	/* Nothing is changed, but until the commit no other one comes this far. */
	static const struct db_sql claim = {
		.text = "UPDATE account SET created_ms = created_ms WHERE id = $1"};
	static const struct db_sql count = {
		.text = "SELECT count(*) FROM api_key WHERE account = $1"};
	struct first_call *call = arg;
	struct db_value account = db_text(call->key->account);
	int64_t n = 0, r = db_run_values(db, &claim, &account, 1, NULL, NULL);

	if (r == 0)
		return err_set(db->err, -ENOENT, "there is no such account");
	if (r > 0)
		r = db_run_values(db, &count, &account, 1, db_row_int, &n);
	if (r < 0 || n > 0)
		return r < 0 ? (int)r : 0;
	r = call->tell(call->arg, db->err);
	if (r == 0)
		r = add_key(db, (void *)call->key);
	return r < 0 ? (int)r : 1;
}

static int check_key(const struct store_key *key, struct err *err)
{
	int r = store_check_account(key->account, err);

	if (r == 0)
		r = STORE_CHECK_NAMES(err, key->id, key->hash, key->prefix, key->name);
	return r < 0 ? r : check_role(key->role, err);
}

int store_key_add_first(struct store *store, const struct store_key *key,
	int (*tell)(void *arg, struct err *err), void *arg, struct err *err)
{
	struct first_call call = {.key = key, .tell = tell, .arg = arg};
	int r = check_key(key, err);

	return r < 0 ? r : store_change(store, add_first, &call, err);
}

int store_key_add(struct store *store, const struct store_key *key, struct err *err)
{
	int r = check_key(key, err);

	return r < 0 ? r : store_change(store, add_key, (void *)key, err);
}

int store_key_tell(const struct db_value *row, store_key_fn fn, void *arg)
{
	struct store_key key = {
		.id = row[0].text.p,
		.account = row[1].text.p,
		.prefix = row[2].text.p,
		.name = row[3].text.p,
		.role = row[4].text.p,
		.rate_limit = row[5].i,
		.created_ms = row[6].i,
		.used_ms = row[7].i,
		.revoked_ms = row[8].i,
	};

	return fn(&key, arg);
}

static int on_key(const struct db_value *row, void *arg)
{
	const struct key_call *call = arg;

	return store_key_tell(row, call->fn, call->arg);
}

static int find_key(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " STORE_KEY_COLUMNS
			" FROM api_key WHERE hash = $1 AND revoked_ms = 0"};
	struct key_call *call = arg;
	int64_t n = db_run(db, &sql, on_key, call, db_text(call->hash));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such key, or it was revoked");
	return n < 0 ? (int)n : 0;
}

int store_key_find(
	struct store *store, const char *hash, store_key_fn fn, void *arg, struct err *err)
{
	struct key_call call = {.hash = hash, .fn = fn, .arg = arg};

	return store_read(store, find_key, &call, err);
}

static int get_key(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " STORE_KEY_COLUMNS
			" FROM api_key WHERE account = $1 AND id = $2 AND revoked_ms = 0"};
	struct key_call *call = arg;
	int64_t n = db_run(db, &sql, on_key, call, db_text(call->account), db_text(call->id));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such key, or it was revoked");
	return n < 0 ? (int)n : 0;
}

int store_key_get(struct store *store, const char *account, const char *id, store_key_fn fn,
	void *arg, struct err *err)
{
	struct key_call call = {.account = account, .id = id, .fn = fn, .arg = arg};
	int r = store_check_account(account, err);

	return r < 0 ? r : store_read(store, get_key, &call, err);
}

static int list_keys(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " STORE_KEY_COLUMNS
			" FROM api_key WHERE account = $1 AND id > $2 ORDER BY id LIMIT $3"};
	struct key_call *call = arg;

	return (int)db_run(db, &sql, on_key, call, db_text(call->account), db_text(call->id),
		db_int(call->limit));
}

int store_key_list(struct store *store, const char *account, const char *after_id, int limit,
	store_key_fn fn, void *arg, struct err *err)
{
	struct key_call call = {
		.account = account, .id = after_id, .limit = limit, .fn = fn, .arg = arg};
	int r = store_check_account(account, err);

	if (r == 0)
		r = store_check_limit(limit, STORE_PAGE_MAX, err);
	return r < 0 ? r : store_read(store, list_keys, &call, err);
}

static int touch_key(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "UPDATE api_key SET used_ms = $3"
			" WHERE account = $1 AND id = $2 AND used_ms < $3"};
	struct key_call *call = arg;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(call->account), db_text(call->id),
		db_int(call->at_ms));

	return n < 0 ? (int)n : 0;
}

int store_key_touch(
	struct store *store, const char *account, const char *id, int64_t used_ms, struct err *err)
{
	struct key_call call = {.account = account, .id = id, .at_ms = used_ms};
	int r = store_check_account(account, err);

	return r < 0 ? r : store_change(store, touch_key, &call, err);
}

static int revoke_key(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "UPDATE api_key SET revoked_ms = $3"
			" WHERE account = $1 AND id = $2 AND revoked_ms = 0"};
	static const struct db_sql tell = {.text = "SELECT pg_notify('cloche', $1)"};
	struct key_call *call = arg;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(call->account), db_text(call->id),
		db_int(call->at_ms));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such key, or it was revoked before");
	if (n > 0 && db->driver->listen) /* goes out when this commits */
		n = db_run(db, &tell, NULL, NULL, db_text(call->id));
	return n < 0 ? (int)n : 0;
}

int store_key_revoke(
	struct store *store, const char *account, const char *id, int64_t at_ms, struct err *err)
{
	struct key_call call = {.account = account, .id = id, .at_ms = at_ms};
	int r = store_check_account(account, err);

	if (r == 0 && at_ms <= 0)
		r = err_set(err, -EINVAL, "a key is revoked at a time after 1970");
	if (r < 0)
		return r;
	r = store_change(store, revoke_key, &call, err);
	if (r == 0)
		store_listener_tell(store->listener, id);
	return r;
}
