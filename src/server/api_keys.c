/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and accounts. A key is shown once, in the answer that made it; only its hash is kept. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/api.h"
#include "server/audit_index.h"
#include "server/auth.h"
#include "server/launcher_ask.h"
#include "server/page.h"
#include "util/clock.h"

#define NAME_MAX_ 100
#define LIMIT_MAX 100000

static void add_time(struct jsonw *j, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT_LEN];

	clock_format(ms, text);
	jsonw_ktext(j, key, ms ? text : NULL);
}

static void write_key(struct str *out, const struct store_key *key, const char *secret)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "id", key->id);
	jsonw_ktext(&j, "account", key->account);
	jsonw_ktext(&j, "name", key->name);
	jsonw_ktext(&j, "role", key->role);
	jsonw_ktext(&j, "prefix", key->prefix);
	jsonw_kint(&j, "rate_limit", key->rate_limit ? key->rate_limit : 0);
	add_time(&j, "created_at", key->created_ms);
	add_time(&j, "used_at", key->used_ms);
	add_time(&j, "revoked_at", key->revoked_ms);
	if (secret)
		jsonw_ktext(&j, "key", secret);
	jsonw_object_end(&j);
}

static int read_name(const struct call *call, const char **ret, struct err *err)
{
	int r = call_text(call, "name", ret, err);

	if (r == 0 && *ret && (!**ret || strlen(*ret) > NAME_MAX_))
		return err_set(err, -EINVAL, "member 'name': want 1 to %d bytes", NAME_MAX_);
	return r;
}

static int read_key(struct call *call, struct store_key *key, struct err *err)
{
	static const char *const names[] = {"name", "role", "account", "rate_limit", NULL};
	const char *account = NULL;
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = read_name(call, &key->name, err);
	if (r == 0)
		r = call_text(call, "role", &key->role, err);
	if (r == 0)
		r = call_text(call, "account", &account, err);
	if (r == 0)
		r = call_int(call, "rate_limit", 1, LIMIT_MAX, 0, &key->rate_limit, err);
	if (r < 0)
		return r;
	key->role = key->role ? key->role : "admin";
	if (role_find(key->role) == ROLE_NONE)
		return err_set(err, -EINVAL, "member 'role': want admin, member or auditor");
	if (account && strcmp(account, call->caller.account) != 0 && !call->caller.is_operator)
		return err_set(err, -EPERM, "keys of another account are its own admins' to make");
	key->account = account ? account : call->caller.account;
	key->name = key->name ? key->name : "";
	return 0;
}

static int ignore_account(const struct store_account *account, void *arg)
{
	return 0;
}

int api_keys_create(struct call *call, struct err *err)
{
	char secret[AUTH_KEY_SIZE], hash[DIGEST_HEX_SIZE], id[ID_SIZE], prefix[AUTH_PREFIX_LEN + 1];
	struct store_key key = {
		.id = id, .hash = hash, .prefix = prefix, .created_ms = clock_wall_ms()};
	int r = read_key(call, &key, err);

	if (r == 0)
		r = store_account_get(call->server->store, key.account, ignore_account, NULL, err);
	if (r < 0)
		return r;
	id_new("ke", id);
	auth_new_key(secret, hash);
	memcpy(prefix, secret, AUTH_PREFIX_LEN);
	prefix[AUTH_PREFIX_LEN] = '\0';
	r = launcher_ask_audit(call, "key.created", id, NULL, key.role, err);
	if (r == 0)
		r = store_key_add(call->server->store, &key, err);
	if (r == 0) {
		call->status = 201;
		write_key(&call->out, &key, secret);
	}
	explicit_bzero(secret, sizeof(secret));
	return r;
}

static int on_key(const struct store_key *key, void *arg)
{
	scoped_str struct str json = {0};

	write_key(&json, key, NULL);
	page_add_named(arg, str_slice(&json), key->id);
	return 0;
}

int api_keys_list(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", NULL};
	struct page page = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = page_begin(&page, call, false, err);
	if (r == 0)
		r = store_key_list(call->server->store, call->caller.account,
			*page.after ? page.after : NULL, (int)page.limit, on_key, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

static int ignore_key(const struct store_key *key, void *arg)
{
	return 0;
}

int api_keys_revoke(struct call *call, struct err *err)
{
	struct store *store = call->server->store;
	const char *account = call->caller.account, *id = call->params[0];
	int r = store_key_get(store, account, id, ignore_key, NULL, err);

	if (r == 0)
		r = launcher_ask_audit(call, AUDIT_INDEX_REVOKED, id, NULL, NULL, err);
	return r < 0 ? r : store_key_revoke(store, account, id, clock_wall_ms(), err);
}

static void write_account(struct str *out, const struct store_account *account)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "id", account->id);
	jsonw_ktext(&j, "name", account->name);
	jsonw_kint(&j, "max_sandboxes", account->max_sandboxes);
	jsonw_kint(&j, "max_execs", account->max_execs);
	add_time(&j, "created_at", account->created_ms);
	jsonw_object_end(&j);
}

static bool is_account_id(const char *id)
{
	size_t len = strlen(id);

	return len >= 1 && len <= 40 &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && id[0] != '-';
}

int api_accounts_create(struct call *call, struct err *err)
{
	static const char *const names[] = {"id", "name", "max_sandboxes", "max_execs", NULL};
	struct store_account account = {.created_ms = clock_wall_ms()};
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = call_text(call, "id", &account.id, err);
	if (r == 0 && !(account.id && is_account_id(account.id)))
		r = err_set(err, -EINVAL,
			"member 'id': want 1 to 40 of a-z, 0-9 and '-', not '-' first");
	if (r == 0)
		r = read_name(call, &account.name, err);
	if (r == 0)
		r = call_int(call, "max_sandboxes", 0, 1000000, 0, &account.max_sandboxes, err);
	if (r == 0)
		r = call_int(call, "max_execs", 0, 1000000, 0, &account.max_execs, err);
	if (r < 0)
		return r;
	account.name = account.name ? account.name : account.id;
	r = store_account_add(call->server->store, &account, err);
	if (r == -EEXIST)
		return err_set(err, r, "there is an account '%s' already", account.id);
	if (r == 0)
		r = launcher_ask_audit(call, "account.created", account.id, NULL, NULL, err);
	if (r < 0)
		return r;
	call->status = 201;
	write_account(&call->out, &account);
	return 0;
}

static int on_account(const struct store_account *account, void *arg)
{
	scoped_str struct str json = {0};

	write_account(&json, account);
	page_add_named(arg, str_slice(&json), account->id);
	return 0;
}

int api_accounts_list(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", NULL};
	struct page page = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = page_begin(&page, call, false, err);
	if (r == 0)
		r = store_account_list(call->server->store, *page.after ? page.after : NULL,
			(int)page.limit, on_account, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}
