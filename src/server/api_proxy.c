/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream proxy of sandboxes to come, and of living ones. Its credentials go in and are told to nobody. */
#include <errno.h>

#include "control/client.h"
#include "server/api.h"
#include "server/launcher_ask.h"
#include "server/network_objects.h"
#include "server/network_use.h"
#include "spec/spec_within.h"
#include "util/jsonw.h"

static const struct network_object own = {NETWORK_OBJECTS_PROXY, NULL, NETWORK_OBJECTS_OWN};

static void write_proxy(struct str *out, const json_t *object)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "url", json_string_value(json_object_get(object, "url")));
	jsonw_kbool(&j, "has_credentials", json_object_get(object, "sealed") != NULL);
	jsonw_object_end(&j);
}

static int answer_proxy(struct call *call, const struct network_object *which, struct err *err)
{
	json_t *object = NULL;
	int r = network_objects_get(call, which, &object, err);

	if (r == -ENOENT)
		return err_set(err, r, "there is no upstream proxy: all goes out by itself");
	if (r == 0)
		write_proxy(&call->out, object);
	json_decref(object);
	return r;
}

static int check_may_choose(const struct call *call, struct err *err)
{
	static const char why[] =
		"url: this account may not choose an upstream proxy" SPEC_WITHIN_WHO("private");

	return network_objects_may_private(call) ? 0 : err_set(err, -EPERM, "%s", why);
}

/* The body's URL, as it is, and the object to be kept, the caller's. */
static int read_wish(struct call *call, const char **ret_url, json_t **ret_object, struct err *err)
{
	static const char *const names[] = {"url", NULL};
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = call_text(call, "url", ret_url, err);
	if (r == 0 && !*ret_url)
		r = err_set(err, -EINVAL, "member 'url': want http://[USER:PASSWORD@]HOST:PORT");
	if (r == 0)
		r = check_may_choose(call, err);
	return r < 0 ? r : network_objects_seal_proxy(call, *ret_url, ret_object, err);
}

static const char *url_of(const json_t *object)
{
	return json_string_value(json_object_get(object, "url"));
}

/* ---- of sandboxes to come ---- */

int api_proxy_get(struct call *call, struct err *err)
{
	return answer_proxy(call, &own, err);
}

int api_proxy_put(struct call *call, struct err *err)
{
	const char *url = NULL;
	json_t *object = NULL;
	int r = read_wish(call, &url, &object, err);

	if (r == 0)
		r = launcher_ask_audit(call, "upstream_proxy.changed", call->caller.account, NULL,
			url_of(object), err);
	if (r == 0)
		r = network_objects_put(call, &own, object, err);
	if (r == 0)
		write_proxy(&call->out, object);
	json_decref(object);
	return r;
}

/* -ENOENT where there is none. */
static int check_there(struct call *call, const struct network_object *which, struct err *err)
{
	json_t *object = NULL;
	int r = network_objects_get(call, which, &object, err);

	json_decref(object);
	return r == -ENOENT ? err_set(err, r, "there is no upstream proxy") : r;
}

int api_proxy_remove(struct call *call, struct err *err)
{
	int r = check_there(call, &own, err);

	if (r == 0)
		r = launcher_ask_audit(
			call, "upstream_proxy.removed", call->caller.account, NULL, NULL, err);
	return r < 0 ? r : network_objects_remove(call, &own, err);
}

/* ---- of a living one ---- */

int api_proxy_of_sandbox_get(struct call *call, struct err *err)
{
	struct network_object which = {NETWORK_OBJECTS_PROXY, NULL, NETWORK_OBJECTS_OWN};
	int r = api_sandbox_id(call, &which.sandbox, NULL, err);

	return r < 0 ? r : answer_proxy(call, &which, err);
}

/* One that runs: what it goes through is then in the hands of its supervisor. */
static int find_running(struct call *call, struct network_object *ret, struct err *err)
{
	scoped(client) struct client *client = NULL;
	int r;

	*ret = (struct network_object){NETWORK_OBJECTS_PROXY, NULL, NETWORK_OBJECTS_OWN};
	r = api_sandbox_id(call, &ret->sandbox, NULL, err);
	return r < 0 ? r : launcher_ask_client(call, ret->sandbox, &client, err);
}

static int change(struct call *call, const struct network_object *which, const char *url,
	const json_t *object, struct err *err)
{
	json_t *hidden = json_object();
	int r = url ? network_use_hide_proxy(url, hidden, err) : 0;

	if (r == 0)
		r = launcher_ask_net_proxy(call, which->sandbox, url_of(object), hidden, err);
	json_decref(hidden);
	return r;
}

/* Kept behind the change, and used for the same URL alone: what is not kept is missing when it is resumed, and the proxy says
 * so. */
int api_proxy_of_sandbox_put(struct call *call, struct err *err)
{
	struct network_object which;
	const char *url = NULL;
	json_t *object = NULL;
	int r = find_running(call, &which, err);

	if (r == 0)
		r = read_wish(call, &url, &object, err);
	if (r == 0)
		r = change(call, &which, url, object, err);
	if (r == 0)
		r = network_objects_put(call, &which, object, err);
	if (r == 0)
		r = launcher_ask_audit(call, "upstream_proxy.changed", which.sandbox, which.sandbox,
			url_of(object), err);
	if (r == 0)
		write_proxy(&call->out, object);
	json_decref(object);
	return r;
}

int api_proxy_of_sandbox_remove(struct call *call, struct err *err)
{
	struct network_object which;
	int r = find_running(call, &which, err);

	if (r == 0)
		r = check_may_choose(call, err);
	if (r == 0)
		r = check_there(call, &which, err);
	if (r == 0)
		r = change(call, &which, NULL, NULL, err);
	if (r == 0)
		r = network_objects_remove(call, &which, err);
	return r < 0 ? r
	             : launcher_ask_audit(call, "upstream_proxy.removed", which.sandbox,
			       which.sandbox, NULL, err);
}
