/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "server/limiter.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/log.h"

#define KEY_BYTES 32

void auth_new_key(char ret_key[AUTH_KEY_SIZE], char ret_hash[DIGEST_HEX_SIZE])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char bytes[KEY_BYTES + 1] = {0};
	size_t n = 0;

	if (getrandom(bytes, KEY_BYTES, 0) != KEY_BYTES)
		abort(); /* not for so few bytes, once the system is up */
	n = (size_t)snprintf(ret_key, AUTH_KEY_SIZE, AUTH_KEY_PREFIX);
	for (unsigned bit = 0; n < AUTH_KEY_SIZE - 1; bit += 6) {
		unsigned two = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];

		ret_key[n++] = digits[two >> (10 - bit % 8) & 63];
	}
	ret_key[n] = '\0';
	digest_of(ret_key, n, ret_hash);
	explicit_bzero(bytes, sizeof(bytes));
}

struct found {
	struct caller *caller;
	int64_t rate_limit;
};

static int take_key(const struct store_key *key, void *arg)
{
	struct found *found = arg;
	struct caller *caller = found->caller;

	caller->role = role_find(key->role);
	snprintf(caller->account, sizeof(caller->account), "%s", key->account);
	snprintf(caller->key, sizeof(caller->key), "%s", key->id);
	snprintf(caller->actor, sizeof(caller->actor), "key:%s", key->id);
	found->rate_limit = key->rate_limit;
	return 0;
}

/* Empty where the value is of another scheme, or no key is behind it. */
static struct slice bearer(struct slice value)
{
	static const char scheme[] = "Bearer ";

	if (value.len < sizeof(scheme) || value.p[sizeof(scheme) - 2] != ' ' ||
		!http1_is((struct slice){.p = value.p, .len = sizeof(scheme) - 2}, "Bearer"))
		return (struct slice){0};
	return (struct slice){
		.p = value.p + sizeof(scheme) - 1, .len = value.len - (sizeof(scheme) - 1)};
}

static int by_key(struct call *call, struct slice key, struct err *err)
{
	struct found found = {.caller = &call->caller};
	char hash[DIGEST_HEX_SIZE];
	int r;

	digest_of(key.p, key.len, hash);
	r = store_key_find(call->server->store, hash, take_key, &found, err);
	if (r == -ENOENT)
		return err_set(err, -EACCES, "this key is not known, or was revoked");
	if (r < 0)
		return r;
	return limiter_take(call->server->limiter, &call->caller, found.rate_limit, err);
}

static int see_sandbox(const struct store_sandbox *sandbox, void *arg)
{
	(void)sandbox;
	(void)arg;
	return 0;
}

/* From within a sandbox a key does no more than one of its account: else a key that got into somebody else's would act there,
 * told in the audit log by a sandbox that its owner cannot see. */
static int check_inside(struct call *call, const char *sandbox, struct err *err)
{
	struct caller *caller = &call->caller;
	int r = store_sandbox_get(
		call->server->store, caller->account, sandbox, see_sandbox, NULL, err);

	if (r == -ENOENT)
		return err_set(err, -EPERM,
			"this key is of another account than the sandbox that it was sent from");
	if (r < 0)
		return r;
	memcpy(caller->sandbox, sandbox, sizeof(caller->sandbox));
	snprintf(
		caller->actor, sizeof(caller->actor), "key:%s in sandbox:%s", caller->key, sandbox);
	return 0;
}

/* Whoever may connect to the socket: root as an admin, members of its group as members (docs/server.md). */
static void by_socket(struct call *call, const struct http_peer *peer)
{
	struct caller *caller = &call->caller;

	caller->role = peer->uid == 0 ? ROLE_ADMIN : ROLE_MEMBER;
	snprintf(caller->account, sizeof(caller->account), AUTH_OPERATOR);
	snprintf(caller->actor, sizeof(caller->actor), "uid:%u", peer->uid);
}

int auth_check(struct call *call, struct err *err)
{
	const struct http_peer *peer = exchange_peer(call->exchange);
	struct slice value = {0}, key;
	int r = call_field(call, "Authorization", &value, err);

	if (r < 0)
		return r;
	key = bearer(value);
	if (key.len > 0)
		r = by_key(call, key, err);
	else if (peer->is_local && !value.p)
		by_socket(call, peer);
	else
		return err_set(err, -EACCES,
			"this needs a key: send it as `Authorization: Bearer clo_...`");
	if (r == 0 && peer->sandbox[0])
		r = check_inside(call, peer->sandbox, err);
	call->caller.is_operator =
		call->caller.role == ROLE_ADMIN && strcmp(call->caller.account, AUTH_OPERATOR) == 0;
	return r;
}

struct first {
	const char *key;
	bool is_printed;
};

static int print_first(void *arg, struct err *err)
{
	struct first *first = arg;
	scoped_str struct str text = {0};
	int r;

	if (first->is_printed)
		return 0;
	str_printf(&text, "admin key, shown only now: %s\n", first->key);
	r = fdio_write_all(1, text.p, text.len);
	explicit_bzero(text.p, text.len);
	if (r < 0)
		return err_set(err, r,
			"print the key of the first admin: %m; nothing was kept, so the next start "
			"makes another one");
	first->is_printed = true;
	return 0;
}

/* Printed and then kept: what was printed in vain is not kept, and so the next start prints another one. */
static int make_first(struct store *store, struct store_key *row, struct err *err)
{
	char key[AUTH_KEY_SIZE], hash[DIGEST_HEX_SIZE], id[ID_SIZE], prefix[AUTH_PREFIX_LEN + 1];
	struct first first = {.key = key};
	int r;

	id_new("ke", id);
	auth_new_key(key, hash);
	memcpy(prefix, key, AUTH_PREFIX_LEN);
	prefix[AUTH_PREFIX_LEN] = '\0';
	row->id = id;
	row->hash = hash;
	row->prefix = prefix;
	r = store_key_add_first(store, row, print_first, &first, err);
	explicit_bzero(key, sizeof(key));
	if (r <= 0 && first.is_printed)
		log_warn("the key that was just shown was not kept and opens nothing");
	return r < 0 ? r : 0;
}

int auth_first_start(struct store *store, struct err *err)
{
	const struct store_account account = {
		.id = AUTH_OPERATOR, .name = AUTH_OPERATOR, .created_ms = clock_wall_ms()};
	struct store_key row = {.account = AUTH_OPERATOR,
		.name = "first",
		.role = "admin",
		.created_ms = account.created_ms};
	int r = store_account_add(store, &account, err);

	return r < 0 && r != -EEXIST ? r : make_first(store, &row, err);
}
