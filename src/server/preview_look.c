/* SPDX-License-Identifier: Apache-2.0 */
#include "server/preview_look.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/client.h"
#include "server/launcher_ask.h"
#include "server/preview_pass.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"

#define REACH_MS 10000 /* for a gateway to say what became of it */
#define TIDY_MAX 100   /* in one go */

/* ---- what there is ---- */

static int take_preview(const struct store_object *object, void *arg)
{
	struct preview_sight *sight = arg;

	sight->is_there = preview_read_object(object, &sight->preview) == 0;
	return 0;
}

static int take_state(const struct store_sandbox *sandbox, void *arg)
{
	struct preview_sight *sight = arg;

	snprintf(sight->state, sizeof(sight->state), "%s", sandbox->state);
	return 0;
}

/* Whoever could make a token: a member, or an admin. */
static bool may_see(const struct store_key *key, const char *account)
{
	return role_find(key->role) >= ROLE_MEMBER && strcmp(key->account, account) == 0;
}

static int take_key(const struct store_key *key, void *arg)
{
	struct preview_sight *sight = arg;

	sight->key_stands = may_see(key, sight->preview.account);
	return 0;
}

int preview_look(struct server *server, const char *id, const char *key,
	struct preview_sight *ret_sight, struct err *err)
{
	struct preview_sight sight = {0};
	int r = store_object_find(server->store, PREVIEW_OBJECT, id, take_preview, &sight, err);

	if (r == 0 && sight.is_there)
		r = store_sandbox_get(server->store, sight.preview.account, sight.preview.sandbox,
			take_state, &sight, err);
	if (r == 0 && sight.is_there && *key)
		r = store_key_get(server->store, sight.preview.account, key, take_key, &sight, err);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_sight = sight;
	return 0;
}

struct spender {
	const char *account;
	char *key;
	bool may_see;
};

static int take_spender(const struct store_key *key, void *arg)
{
	struct spender *spender = arg;

	spender->may_see = may_see(key, spender->account);
	snprintf(spender->key, ID_SIZE, "%s", key->id);
	return 0;
}

int preview_look_spend(struct server *server, const struct preview *preview, const char *token,
	char ret_key[ID_SIZE], struct err *err)
{
	struct spender spender = {.account = preview->account, .key = ret_key};
	char name[PREVIEW_SPENT_SIZE];
	int r;

	preview_pass_spent(preview->id, token, name);
	r = store_token_use(server->store, name, preview->sandbox, clock_wall_ms(), take_spender,
		&spender, err);
	if (r == 0 && !spender.may_see)
		r = err_set(err, -ENOENT, "the key of this token may not see previews");
	return r;
}

/* ---- the way in ---- */

/* The gateway's first byte: 0, or why not. Its end says that there is no gateway. */
static int wait_for_gateway(int fd, struct err *err)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	unsigned char became;

	if (poll(&p, 1, REACH_MS) != 1)
		return err_set(err, -ETIMEDOUT, "the sandbox's gateway does not answer");
	if (read(fd, &became, 1) != 1)
		return err_set(err, -ECONNRESET, "the sandbox's gateway has gone");
	return became ? err_set(err, -became, "the port was not reached: %m") : 0;
}

/* Letters of an IPv6 zone are no part of what the record says. */
static void add_from(struct jsonw *j, const char *from)
{
	char text[64];
	size_t n = 0;

	for (; *from && n < sizeof(text) - 1; from++)
		if (strchr("0123456789abcdef.:[]", *from))
			text[n++] = *from;
	text[n] = '\0';
	jsonw_ktext(j, "from", text);
}

int preview_look_reach(
	struct server *server, const struct preview *preview, const char *from, struct err *err)
{
	scoped(client) struct client *client = NULL;
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);
	scoped_fd int fd = -1;
	int r = launcher_ask_connect(server, preview->sandbox, err);

	if (r < 0)
		return r == -ECONNREFUSED ? -EHOSTUNREACH : r;
	client = client_adopt(r);
	jsonw_object(&j);
	jsonw_kint(&j, "port", preview->port);
	add_from(&j, from);
	jsonw_object_end(&j);
	r = client_ask_fd(client, "visit", str_slice(&body), &fd, err);
	if (r == 0)
		r = wait_for_gateway(fd, err);
	return r < 0 ? r : take_fd(&fd);
}

/* ---- what an end leaves ---- */

struct leavings {
	struct preview previews[TIDY_MAX];
	size_t n;
};

static int take_leaving(const struct store_object *object, void *arg)
{
	struct leavings *leavings = arg;

	if (leavings->n < TIDY_MAX &&
		preview_read_object(object, &leavings->previews[leavings->n]) == 0)
		leavings->n++;
	return 0;
}

static void remove_one(struct server *server, const struct preview *preview)
{
	struct call as = {.server = server, .caller = {.actor = "server"}};
	const struct store_object which = {.account = preview->account,
		.kind = PREVIEW_OBJECT,
		.sandbox = preview->sandbox,
		.name = preview->id};
	struct err err = {0};
	int r = store_object_remove(server->store, &which, &err);

	snprintf(as.caller.account, sizeof(as.caller.account), "%s", preview->account);
	if (r == 0)
		r = launcher_ask_audit(&as, "preview.removed", preview->id, preview->sandbox,
			"its sandbox ended", &err);
	if (r < 0 && r != -ENOENT)
		log_warn("preview %s, whose sandbox ended: %s", preview->id, err.msg);
}

static void remove_all(struct server *server, const struct leavings *leavings)
{
	for (size_t i = 0; i < leavings->n; i++)
		remove_one(server, &leavings->previews[i]);
}

void preview_look_sandbox_ended(struct server *server, const char *account, const char *sandbox)
{
	const struct store_object which = {
		.account = account, .kind = PREVIEW_OBJECT, .sandbox = sandbox};
	struct leavings *leavings = new0(struct leavings);
	struct err err = {0};

	if (store_object_list(server->store, &which, TIDY_MAX, take_leaving, leavings, &err) < 0)
		log_warn("previews of %s, which ended, stay for now: %s", sandbox, err.msg);
	remove_all(server, leavings);
	free(leavings);
}

void preview_look_tidy(struct server *server)
{
	struct leavings *leavings = new0(struct leavings);
	struct err err = {0};

	if (store_object_ended(
		    server->store, PREVIEW_OBJECT, TIDY_MAX, take_leaving, leavings, &err) < 0)
		log_warn("previews of sandboxes that ended stay for now: %s", err.msg);
	remove_all(server, leavings);
	free(leavings);
}
