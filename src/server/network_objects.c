/* SPDX-License-Identifier: Apache-2.0 */
#include "server/network_objects.h"

#include <errno.h>
#include <string.h>

#include "server/secret_box.h"
#include "spec/spec_network_parse.h"
#include "util/clock.h"
#include "util/mem.h"

static struct store_object object_of(const struct call *call, const struct network_object *which)
{
	return (struct store_object){.account = call->caller.account,
		.kind = which->kind,
		.sandbox = which->sandbox,
		.name = which->name};
}

static int take_json(const struct store_object *object, void *arg)
{
	*(json_t **)arg = json_loads(object->json, 0, NULL);
	return 0;
}

int network_objects_get(
	struct call *call, const struct network_object *which, json_t **ret, struct err *err)
{
	const struct store_object object = object_of(call, which);
	json_t *json = NULL;
	int r = store_object_get(call->server->store, &object, take_json, &json, err);

	if (r < 0)
		return r;
	if (!json)
		return err_set(err, -EUCLEAN, "the %s in the store is damaged", which->kind);
	*ret = json;
	return 0;
}

int network_objects_put(struct call *call, const struct network_object *which, const json_t *object,
	struct err *err)
{
	scoped_mem char *text = json_dumps(object, JSON_COMPACT);
	struct store_object row = object_of(call, which);

	row.json = text;
	row.changed_ms = clock_wall_ms();
	return store_object_put(call->server->store, &row, err);
}

int network_objects_remove(struct call *call, const struct network_object *which, struct err *err)
{
	const struct store_object object = object_of(call, which);

	return store_object_remove(call->server->store, &object, err);
}

bool network_objects_may_private(const struct call *call)
{
	const json_t *accounts = json_object_get(call->server->config, "accounts");

	return json_is_true(
		json_object_get(json_object_get(accounts, call->caller.account), "private"));
}

/* ---- what is sealed ---- */

/* What a value belongs to, as text that cannot mean two things. The caller's. */
static char *label_of(const struct call *call, const char *kind, const char *name, json_t *rest)
{
	json_t *label = json_pack("[s,s,s,o]", kind, call->caller.account, name, rest);
	char *text = json_dumps(label, JSON_COMPACT);

	json_decref(label);
	return text;
}

static char *secret_label(
	const struct call *call, const char *name, const json_t *hosts, bool plain)
{
	return label_of(call, NETWORK_OBJECTS_SECRET, name,
		json_pack("[O,b]", (json_t *)hosts, (int)plain));
}

int network_objects_seal_secret(struct call *call, const char *name, const json_t *hosts,
	bool plain, const char *value, json_t **ret, struct err *err)
{
	scoped_mem char *label = secret_label(call, name, hosts, plain);
	scoped_str struct str sealed = {0};
	char now[CLOCK_TEXT_LEN];
	int r = secret_box_seal(
		call->server->secrets, slice_of(label), slice_of(value), &sealed, err);

	if (r < 0)
		return r;
	clock_format(clock_wall_ms(), now);
	*ret = json_pack("{s:O,s:b,s:s,s:s}", "hosts", (json_t *)hosts, "plain", (int)plain,
		"set_at", now, "sealed", sealed.p);
	return 0;
}

int network_objects_open_secret(struct call *call, const char *name, const json_t *object,
	struct str *value, struct err *err)
{
	scoped_mem char *label = secret_label(call, name, json_object_get(object, "hosts"),
		json_is_true(json_object_get(object, "plain")));
	const char *sealed = json_string_value(json_object_get(object, "sealed"));
	int r = secret_box_unseal(
		call->server->secrets, slice_of(label), slice_of(sealed ? sealed : ""), value, err);

	return r < 0 ? err_wrap(err, r, "secret %s", name) : 0;
}

static char *proxy_label(const struct call *call, const char *url)
{
	return label_of(call, NETWORK_OBJECTS_PROXY, url, json_null());
}

int network_objects_seal_proxy(struct call *call, const char *url, json_t **ret, struct err *err)
{
	scoped_mem char *label = NULL;
	scoped_str struct str sealed = {0};
	struct spec_network net;
	int r;

	spec_network_init(&net);
	r = spec_network_parse_proxy(url, &net, err);
	if (r == 0 && net.proxy_user) {
		label = proxy_label(call, net.upstream_proxy);
		r = secret_box_seal(
			call->server->secrets, slice_of(label), slice_of(url), &sealed, err);
	}
	if (r == 0)
		*ret = json_pack("{s:s,s:s*}", "url", net.upstream_proxy, "sealed", sealed.p);
	spec_network_done(&net);
	return r;
}

int network_objects_open_proxy(
	struct call *call, const json_t *object, struct str *url, struct err *err)
{
	const char *plain = json_string_value(json_object_get(object, "url"));
	const char *sealed = json_string_value(json_object_get(object, "sealed"));
	scoped_mem char *label = NULL;
	int r;

	if (!sealed) {
		str_puts(url, plain ? plain : "");
		return 0;
	}
	label = proxy_label(call, plain ? plain : "");
	r = secret_box_unseal(call->server->secrets, slice_of(label), slice_of(sealed), url, err);
	return r < 0 ? err_wrap(err, r, "the upstream proxy") : 0;
}
