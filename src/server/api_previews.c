/* SPDX-License-Identifier: Apache-2.0 */
/* Previews: which ports of sandboxes are shown, and to whom. What shows them is previews.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/client.h"
#include "server/api.h"
#include "server/launcher_ask.h"
#include "server/page.h"
#include "server/preview_pass.h"
#include "server/previews.h"
#include "util/clock.h"
#include "util/mem.h"

static struct store_object object_of(const struct preview *preview)
{
	return (struct store_object){.account = preview->account,
		.kind = PREVIEW_OBJECT,
		.sandbox = preview->sandbox,
		.name = preview->id};
}

static int check_shown(struct call *call, struct err *err)
{
	if (previews_place(call->server->previews))
		return 0;
	call->status = 409;
	call->code = "previews_off";
	return err_set(err, -EOPNOTSUPP,
		"this server shows no previews: start it with --previews ADDRESS:PORT");
}

/* What is public is shown to whoever reaches the listener, without an account or a trace of who it is: an admin's to say. */
static int read_visibility(const struct call *call, bool *ret_public, struct err *err)
{
	const char *text = NULL;
	int r = call_text(call, "visibility", &text, err);

	*ret_public = text && strcmp(text, "public") == 0;
	if (r == 0 && !(text && (*ret_public || strcmp(text, "private") == 0)))
		return err_set(err, -EINVAL, "member 'visibility': want private or public");
	if (r == 0 && *ret_public && call->caller.role < ROLE_ADMIN)
		return err_set(err, -EPERM,
			"a key with the role %s makes private previews: what is public is an "
			"admin's to say",
			role_name(call->caller.role));
	return r;
}

static int read_body(
	struct call *call, struct preview *preview, const char **ret_sandbox, struct err *err)
{
	static const char *const names[] = {"sandbox", "port", "visibility", "name", NULL};
	const char *name = NULL;
	int64_t port = 0;
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = call_text(call, "sandbox", ret_sandbox, err);
	if (r == 0 && !(*ret_sandbox && id_is_valid("sb", *ret_sandbox)))
		r = err_set(err, -EINVAL, "member 'sandbox': want an id, such as sb_...");
	if (r == 0)
		r = call_int(call, "port", 1, UINT16_MAX, 0, &port, err);
	if (r == 0 && port == 0)
		r = err_set(err, -EINVAL, "member 'port': want the TCP port inside");
	if (r == 0)
		r = call_text(call, "name", &name, err);
	if (r == 0 && name && (!*name || strlen(name) > PREVIEW_NAME_MAX))
		r = err_set(err, -EINVAL, "member 'name': want 1 to %d bytes", PREVIEW_NAME_MAX);
	if (r == 0)
		r = read_visibility(call, &preview->is_public, err);
	if (r < 0)
		return r;
	preview->port = (uint16_t)port;
	(void)snprintf(preview->name, sizeof(preview->name), "%s", name ? name : ""); /* fits */
	(void)snprintf(preview->sandbox, sizeof(preview->sandbox), "%s", *ret_sandbox);
	(void)snprintf(preview->account, sizeof(preview->account), "%s", call->caller.account);
	return 0;
}

static int take_state(const struct store_sandbox *sandbox, void *arg)
{
	(void)snprintf(arg, 16, "%s", sandbox->state); /* fits */
	return 0;
}

/* One that runs is asked whether anybody can be let in at all. */
static int check_sandbox(struct call *call, const char *sandbox, struct err *err)
{
	scoped(client) struct client *client = NULL;
	char state[16] = "";
	int r = store_sandbox_get(
		call->server->store, call->caller.account, sandbox, take_state, state, err);

	if (r == -ENOENT)
		return err_set(err, r, "there is no sandbox '%s'", sandbox);
	if (r < 0)
		return r;
	if (strcmp(state, "ended") == 0)
		return err_set(err, -EBADFD, "sandbox %s has ended", sandbox);
	if (strcmp(state, "running") != 0)
		return 0;
	r = launcher_ask_client(call, sandbox, &client, err);
	if (r == 0)
		r = client_ask(client, "visit", slice_of("{\"probe\":true}"), NULL, err);
	if (r == -EOPNOTSUPP) {
		call->status = 409;
		call->code = "no_network";
	}
	return r;
}

static int count_object(const struct store_object *object, void *arg)
{
	*(size_t *)arg += 1;
	return 0;
}

static int check_room(struct call *call, struct err *err)
{
	const struct store_object all = {.account = call->caller.account, .kind = PREVIEW_OBJECT};
	size_t n = 0;
	int r = store_object_list_all(
		call->server->store, &all, PREVIEW_MAX, count_object, &n, err);

	if (r >= 0 && n >= PREVIEW_MAX) {
		call->status = 409;
		call->code = "too_many";
		return err_set(err, -E2BIG, "an account has at most %d previews", PREVIEW_MAX);
	}
	return r < 0 ? r : 0;
}

static int audit(struct call *call, const char *act, const struct preview *preview, struct err *err)
{
	scoped_mem char *detail =
		mem_printf("port %u, %s", preview->port, preview->is_public ? "public" : "private");

	return launcher_ask_audit(call, act, preview->id, preview->sandbox, detail, err);
}

static int put(struct call *call, const struct preview *preview, bool is_new, struct err *err)
{
	struct store_object object = object_of(preview);
	scoped_str struct str json = {0};

	preview_write_object(preview, &json);
	object.json = json.p;
	object.changed_ms = clock_wall_ms();
	return is_new ? store_object_put(call->server->store, &object, err)
	              : store_object_change(call->server->store, &object, err);
}

static void answer(struct call *call, const struct preview *preview)
{
	preview_write(preview, previews_place(call->server->previews), &call->out);
}

int api_previews_create(struct call *call, struct err *err)
{
	struct preview preview = {.created_ms = clock_wall_ms()};
	const char *sandbox = NULL;
	int r = read_body(call, &preview, &sandbox, err);

	if (r == 0)
		r = check_shown(call, err);
	if (r == 0)
		r = check_sandbox(call, sandbox, err);
	if (r == 0)
		r = check_room(call, err);
	if (r < 0)
		return r;
	id_new("pv", preview.id);
	preview_new_round(preview.round);
	r = audit(call, "preview.created", &preview, err);
	if (r == 0)
		r = put(call, &preview, true, err);
	if (r < 0)
		return r;
	call->status = 201;
	answer(call, &preview);
	return 0;
}

static int on_preview(const struct store_object *object, void *arg)
{
	scoped_str struct str json = {0};
	struct preview preview = {0};
	struct page *page = arg;

	if (preview_read_object(object, &preview) < 0)
		return 0;
	preview_write(&preview, previews_place(page->call->server->previews), &json);
	page_add_named(page, str_slice(&json), preview.id);
	return 0;
}

int api_previews_list(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", NULL};
	struct store_object behind = {.account = call->caller.account, .kind = PREVIEW_OBJECT};
	struct page page = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = page_begin(&page, call, false, err);
	behind.name = page.after && *page.after ? page.after : NULL;
	if (r == 0)
		r = store_object_list_all(
			call->server->store, &behind, (int)page.limit, on_preview, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

static int take_preview(const struct store_object *object, void *arg)
{
	return preview_read_object(object, arg);
}

/* The one in the path: another account's is not there. */
static int find(struct call *call, struct preview *ret_preview, struct err *err)
{
	const char *id = call->params[0];
	struct preview preview = {0};
	int r = id_is_valid("pv", id) ? store_object_find(call->server->store, PREVIEW_OBJECT, id,
						take_preview, &preview, err)
	                              : -ENOENT;

	if (r == 0 && strcmp(preview.account, call->caller.account) != 0)
		r = -ENOENT;
	if (r == -ENOENT || r == -EINVAL)
		return err_set(err, -ENOENT, "there is no preview '%s'", id);
	*ret_preview = preview;
	return r < 0 ? r : 0;
}

int api_previews_get(struct call *call, struct err *err)
{
	struct preview preview = {0};
	int r = find(call, &preview, err);

	if (r == 0)
		answer(call, &preview);
	return r;
}

int api_previews_delete(struct call *call, struct err *err)
{
	struct store_object which;
	struct preview preview = {0};
	int r = find(call, &preview, err);

	if (r == 0)
		r = audit(call, "preview.removed", &preview, err);
	if (r < 0)
		return r;
	which = object_of(&preview);
	r = store_object_remove(call->server->store, &which, err);
	previews_changed(call->server->previews);
	return r;
}

/* Where it changes, so does the round: whoever was let in before has to be let in again. */
int api_previews_visibility(struct call *call, struct err *err)
{
	static const char *const names[] = {"visibility", NULL};
	struct preview preview = {0};
	bool is_public = false;
	int r = find(call, &preview, err);

	if (r == 0)
		r = call_check_body(call, names, err);
	if (r == 0)
		r = read_visibility(call, &is_public, err);
	if (r == 0 && preview.is_public != is_public) {
		preview.is_public = is_public;
		preview_new_round(preview.round);
		r = audit(call, "preview.visibility", &preview, err);
		if (r == 0)
			r = put(call, &preview, false, err);
		previews_changed(call->server->previews);
	}
	if (r == 0)
		answer(call, &preview);
	return r;
}

static int add_token(struct call *call, const struct preview *preview, const char *token,
	int64_t expires_ms, struct err *err)
{
	char name[PREVIEW_SPENT_SIZE];

	preview_pass_spent(preview->id, token, name);
	return store_token_add(call->server->store,
		&(struct store_token){.hash = name,
			.sandbox = preview->sandbox,
			.api_key = call->caller.key,
			.expires_ms = expires_ms},
		err);
}

static void answer_token(
	struct call *call, const struct preview *preview, const char *token, int64_t expires_ms)
{
	struct jsonw j = jsonw_to(&call->out);
	scoped_str struct str url = {0};
	char at[CLOCK_TEXT_LEN];

	clock_format(expires_ms, at);
	preview_add_origin(preview->id, previews_place(call->server->previews), &url);
	str_printf(&url, "/.cloche/open?token=%s", token);
	jsonw_object(&j);
	jsonw_ktext(&j, "token", token);
	jsonw_ktext(&j, "url", url.p);
	jsonw_ktext(&j, "expires_at", at);
	jsonw_object_end(&j);
	explicit_bzero(url.p, url.len);
}

int api_previews_token(struct call *call, struct err *err)
{
	int64_t expires_ms = clock_wall_ms() + PREVIEW_TOKEN_S * 1000;
	char token[PREVIEW_TOKEN_SIZE];
	struct preview preview = {0};
	int r = find(call, &preview, err);

	if (r == 0)
		r = check_shown(call, err);
	if (r == 0 && !*call->caller.key) {
		call->status = 409;
		call->code = "needs_key";
		r = err_set(err, -EOPNOTSUPP,
			"a link is good as long as the key that asked for it: ask with one, not "
			"over "
			"the Unix socket without");
	}
	if (r < 0)
		return r;
	preview_pass_new_token(token);
	r = add_token(call, &preview, token, expires_ms, err);
	if (r == 0) {
		call->status = 201;
		answer_token(call, &preview, token, expires_ms);
	}
	explicit_bzero(token, sizeof(token));
	return r;
}
