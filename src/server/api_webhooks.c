/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks and the log of their deliveries. A secret is shown once, in the answer that made it. */
#include <errno.h>
#include <string.h>

#include "proto/url.h"
#include "server/api.h"
#include "server/file_hooks.h"
#include "server/launcher_ask.h"
#include "server/page.h"
#include "server/webhook_sender.h"
#include "server/webhooks.h"
#include "util/clock.h"
#include "util/mem.h"

static int ignore_sandbox(const struct store_sandbox *sandbox, void *arg)
{
	return 0;
}

struct counts {
	size_t all, with_paths;
};

static int count_object(const struct store_object *object, void *arg)
{
	struct counts *counts = arg;

	counts->all++;
	counts->with_paths += strstr(object->json, WEBHOOK_PATHS_MARK) != NULL;
	return 0;
}

static struct store_object object_of(const struct call *call, const char *id)
{
	return (struct store_object){
		.account = call->caller.account, .kind = WEBHOOK_OBJECT, .name = id};
}

static int check_room(struct call *call, const struct webhook *webhook, struct err *err)
{
	const struct store_object all = object_of(call, NULL);
	struct counts n = {0};
	int r = store_object_list(call->server->store, &all, WEBHOOK_MAX, count_object, &n, err);

	if (r >= 0 && n.all >= WEBHOOK_MAX)
		r = err_set(err, -E2BIG, "an account has at most %d webhooks", WEBHOOK_MAX);
	else if (r >= 0 && webhook->paths.n > 0 && n.with_paths >= WEBHOOK_FILES_MAX)
		r = err_set(err, -E2BIG, "an account has at most %d webhooks with 'paths'",
			WEBHOOK_FILES_MAX);
	if (r == -E2BIG) {
		call->status = 409;
		call->code = "too_many";
	}
	return r < 0 ? r : 0;
}

/* Files are watched in one living sandbox each, so where they are told of is said in full. */
static int check_paths(const struct webhook *webhook, const char *sandbox, struct err *err)
{
	bool has_paths = webhook->paths.n > 0;

	if (webhook_hears(webhook, WEBHOOK_FILES) != has_paths)
		return err_set(err, -EINVAL,
			has_paths ? "member 'paths': it goes with '" WEBHOOK_FILES "' in 'events'"
				  : "member 'paths': '" WEBHOOK_FILES
				    "' wants to know below which paths");
	if (has_paths && !sandbox)
		return err_set(err, -EINVAL,
			"member 'sandbox': '" WEBHOOK_FILES "' is of one sandbox: name it");
	return 0;
}

static int read_body(struct call *call, struct webhook *webhook, struct err *err)
{
	static const char *const names[] = {"url", "events", "sandbox", "paths", NULL};
	const char *url = NULL, *sandbox = NULL;
	const json_t *kinds = json_object_get(call->body, "events");
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = call_text(call, "url", &url, err);
	if (r == 0)
		r = call_text(call, "sandbox", &sandbox, err);
	if (r == 0)
		r = webhook_check_url(
			url, webhooks_may_be_private(call->server, call->caller.account), err);
	if (r == 0 && kinds && !json_is_array(kinds) && !json_is_null(kinds))
		r = err_set(err, -EINVAL, "member 'events': want a list");
	if (r == 0)
		r = webhook_paths_read(json_object_get(call->body, "paths"), &webhook->paths, err);
	if (r == 0)
		r = webhook_read_kinds(kinds, webhook->paths.n > 0, &webhook->kinds, err);
	if (r == 0)
		r = check_paths(webhook, sandbox, err);
	if (r == 0 && sandbox && !id_is_valid("sb", sandbox))
		r = err_set(err, -EINVAL, "member 'sandbox': want an id, such as sb_...");
	if (r == 0 && sandbox)
		r = store_sandbox_get(call->server->store, call->caller.account, sandbox,
			ignore_sandbox, NULL, err);
	if (r < 0)
		return r;
	webhook->url = mem_dup(url);
	webhook->sandbox = mem_dup(sandbox);
	return 0;
}

/* What is behind the host may be a secret of the receiver's, and every admin reads the audit log. */
static int audit(struct call *call, const char *act, const struct webhook *webhook, struct err *err)
{
	scoped_str struct str place = {0};
	struct url parts;

	if (url_read(slice_of(webhook->url), &parts) == 0)
		url_add(&place, parts.scheme, parts.authority.host.text, parts.authority.port,
			slice_of("/"));
	return launcher_ask_audit(call, act, webhook->id, webhook->sandbox, place.p, err);
}

static void say_changed(struct call *call, const struct webhook *webhook)
{
	webhooks_changed(call->server->webhooks, call->caller.account);
	if (webhook->paths.n > 0)
		file_hooks_changed(call->server->file_hooks);
}

static int keep(struct call *call, const struct webhook *webhook, struct err *err)
{
	scoped_str struct str json = {0};
	struct store_object object = object_of(call, webhook->id);
	int r = webhook_write_object(webhook, object.account, call->server->secrets, &json, err);

	if (r < 0)
		return r;
	object.json = json.p;
	object.changed_ms = webhook->created_ms;
	r = store_object_put(call->server->store, &object, err);
	say_changed(call, webhook);
	return r;
}

int api_webhooks_create(struct call *call, struct err *err)
{
	scoped(webhook) struct webhook *webhook = new0(struct webhook);
	int r = read_body(call, webhook, err);

	if (r == 0)
		r = check_room(call, webhook, err);
	if (r < 0)
		return r;
	id_new("wh", webhook->id);
	webhook->created_ms = clock_wall_ms();
	webhook->secret = mem_zero(1, WEBHOOK_SECRET_SIZE);
	webhook_new_secret(webhook->secret);
	r = audit(call, "webhook.created", webhook, err);
	if (r == 0)
		r = keep(call, webhook, err);
	if (r < 0)
		return r;
	call->status = 201;
	webhook_write(webhook, true, &call->out);
	return 0;
}

static int on_webhook(const struct store_object *object, void *arg)
{
	scoped(webhook) struct webhook *webhook = NULL;
	scoped_str struct str json = {0};
	struct page *page = arg;

	if (webhook_read_object(object, page->call->server->secrets, &webhook) < 0)
		return 0;
	webhook_write(webhook, false, &json);
	page_add_named(page, str_slice(&json), webhook->id);
	return 0;
}

int api_webhooks_list(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", NULL};
	struct store_object behind = object_of(call, NULL);
	struct page page = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = page_begin(&page, call, false, err);
	behind.name = page.after && *page.after ? page.after : NULL;
	if (r == 0)
		r = store_object_list(
			call->server->store, &behind, (int)page.limit, on_webhook, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

struct finding {
	const struct server *server;
	struct webhook **ret;
};

static int take_webhook(const struct store_object *object, void *arg)
{
	const struct finding *finding = arg;

	return webhook_read_object(object, finding->server->secrets, finding->ret);
}

/* The one in the path. */
static int find(struct call *call, struct webhook **ret_webhook, struct err *err)
{
	const char *id = call->params[0];
	const struct store_object which = object_of(call, id);
	struct finding finding = {call->server, ret_webhook};
	int r = id_is_valid("wh", id)
	                ? store_object_get(call->server->store, &which, take_webhook, &finding, err)
	                : -ENOENT;

	if (r >= 0 && !*ret_webhook)
		r = -ENOENT;
	return r == -ENOENT ? err_set(err, r, "there is no webhook %s", id) : r < 0 ? r : 0;
}

int api_webhooks_get(struct call *call, struct err *err)
{
	scoped(webhook) struct webhook *webhook = NULL;
	int r = find(call, &webhook, err);

	if (r == 0)
		webhook_write(webhook, false, &call->out);
	return r;
}

int api_webhooks_delete(struct call *call, struct err *err)
{
	scoped(webhook) struct webhook *webhook = NULL;
	const struct store_object which = object_of(call, call->params[0]);
	int r = find(call, &webhook, err);

	if (r < 0 || !webhook)
		return r;
	r = audit(call, "webhook.deleted", webhook, err);
	if (r == 0)
		r = store_object_remove(call->server->store, &which, err);
	say_changed(call, webhook);
	return r;
}

static void add_time(struct jsonw *j, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT_LEN];

	clock_format(ms, text);
	jsonw_ktext(j, key, ms ? text : NULL);
}

/* Of what was told, enough to find it: the log and the lifecycle have the rest. */
static void add_subject(struct jsonw *j, const char *body)
{
	json_t *root = json_loads(body, JSON_ALLOW_NUL, NULL);
	const json_t *data = json_object_get(root, "data");

	jsonw_ktext(j, "event", json_string_value(json_object_get(root, "type")));
	jsonw_ktext(j, "sandbox", json_string_value(json_object_get(data, "sandbox")));
	if (json_object_get(data, "seq"))
		jsonw_kint(j, "seq", json_integer_value(json_object_get(data, "seq")));
	else
		jsonw_knull(j, "seq"); /* changes of files are no event of the record */
	json_decref(root);
}

static int on_delivery(const struct store_delivery *delivery, void *arg)
{
	struct page *page = arg;
	bool is_waiting = strcmp(delivery->state, "waiting") == 0;
	scoped_str struct str json = {0};
	struct jsonw j = jsonw_to(&json);

	jsonw_object(&j);
	jsonw_ktext(&j, "id", delivery->id);
	jsonw_ktext(&j, "webhook", delivery->webhook);
	add_subject(&j, delivery->json);
	jsonw_ktext(&j, "state", delivery->state);
	add_time(&j, "created_at", delivery->created_ms);
	add_time(&j, "next_try_at", is_waiting ? delivery->due_ms : 0);
	jsonw_key(&j, "tries");
	jsonw_raw(&j, slice_of(*delivery->result ? delivery->result : "[]"));
	jsonw_object_end(&j);
	page_add(page, str_slice(&json), delivery->n);
	return 0;
}

int api_webhooks_deliveries(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", NULL};
	scoped(webhook) struct webhook *webhook = NULL;
	struct page page = {0};
	int r = find(call, &webhook, err);

	if (r == 0)
		r = call_check_query(call, names, err);
	if (r == 0)
		r = page_begin(&page, call, true, err);
	if (r == 0)
		r = store_delivery_page(call->server->store,
			&(struct store_delivery){.account = call->caller.account,
				.webhook = webhook->id,
				.n = page.cursor},
			(int)page.limit, on_delivery, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

int api_webhooks_redeliver(struct call *call, struct err *err)
{
	scoped(webhook) struct webhook *webhook = NULL;
	const struct store_delivery which = {.id = call->params[1],
		.account = call->caller.account,
		.webhook = call->params[0],
		.due_ms = clock_wall_ms()};
	struct jsonw j = jsonw_to(&call->out);
	int r = find(call, &webhook, err);

	if (r == 0)
		r = store_delivery_again(call->server->store, &which, err);
	if (r < 0)
		return r;
	webhook_sender_wake(call->server->sender);
	call->status = 202;
	jsonw_object(&j);
	jsonw_ktext(&j, "id", which.id);
	jsonw_ktext(&j, "state", "waiting");
	jsonw_object_end(&j);
	return 0;
}
