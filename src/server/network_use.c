/* SPDX-License-Identifier: Apache-2.0 */
#include "server/network_use.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "server/network_objects.h"
#include "spec/spec_network_parse.h"
#include "util/fdio.h"
#include "util/mem.h"

#define META_MAX (4u << 20)

static const struct network_object own_rules = {NETWORK_OBJECTS_RULES, NULL, NETWORK_OBJECTS_OWN};
static const struct network_object own_proxy = {NETWORK_OBJECTS_PROXY, NULL, NETWORK_OBJECTS_OWN};

static bool is_there(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return value && !json_is_null(value);
}

/* 1: *ret is filled, 0: there is none. */
static int find(
	struct call *call, const struct network_object *which, json_t **ret, struct err *err)
{
	int r = network_objects_get(call, which, ret, err);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* ---- rules and proxy ---- */

static int add_rules(struct call *call, json_t *network, struct err *err)
{
	static const char *const keys[] = {"net", "allow", "deny", "sets", "ask", "shadow"};
	json_t *rules = NULL;
	int r;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (is_there(network, keys[i]))
			return 0;
	r = find(call, &own_rules, &rules, err);
	if (r == 1)
		json_object_update(network, rules);
	json_decref(rules);
	return r < 0 ? r : 0;
}

static int add_proxy(struct call *call, json_t *network, struct err *err)
{
	const char *net = json_string_value(json_object_get(network, "net"));
	scoped_str struct str url = {0};
	json_t *proxy = NULL;
	int r;

	if (is_there(network, "upstream_proxy") || (net && strcmp(net, "none") == 0))
		return 0;
	r = find(call, &own_proxy, &proxy, err);
	if (r == 1) {
		r = network_objects_open_proxy(call, proxy, &url, err);
		if (r == 0)
			json_object_set_new(network, "upstream_proxy", json_string(url.p));
	}
	json_decref(proxy);
	if (url.p)
		explicit_bzero(url.p, url.len);
	return r < 0 ? r : 0;
}

/* ---- secrets ---- */

static void add_words(json_t *object, const char *key, const struct spec_words *words)
{
	json_t *list = json_array();

	for (size_t i = 0; i < words->n; i++)
		json_array_append_new(list, json_string(words->items[i]));
	json_object_set_new(object, key, list);
}

/* A text as an object; one that is no more than a name says no hosts. The caller's. */
static int read_text(const char *text, json_t **ret, struct err *err)
{
	struct spec_network net;
	const struct spec_secret *secret;
	json_t *object;
	int r;

	if (!strchr(text, '@')) {
		*ret = json_pack("{s:s}", "name", text);
		return 0;
	}
	spec_network_init(&net);
	r = spec_network_parse_secret(text, &net, err);
	if (r == 0) {
		secret = &net.secrets[0];
		object = json_pack("{s:s,s:b}", "name", secret->name, "plain", (int)secret->plain);
		add_words(object, "hosts", &secret->hosts);
		if (secret->pass.n > 0)
			add_words(object, "pass", &secret->pass);
		*ret = object;
	}
	spec_network_done(&net);
	return r;
}

static bool has_host(const json_t *hosts, const char *host)
{
	for (size_t i = 0; i < json_array_size(hosts); i++)
		if (strcasecmp(json_string_value(json_array_get(hosts, i)) ?: "", host) == 0)
			return true;
	return false;
}

/* Who may use a secret is not who may send it anywhere. */
static int check_hosts(const char *name, const json_t *secret, const json_t *kept, struct err *err)
{
	const json_t *hosts = json_object_get(secret, "hosts");

	if (!json_is_array(hosts))
		return err_set(err, -EINVAL, "secret '%s': hosts must be a list", name);
	for (size_t i = 0; i < json_array_size(hosts); i++) {
		const char *host = json_string_value(json_array_get(hosts, i));

		if (!host)
			return err_set(err, -EINVAL, "secret '%s': hosts are texts", name);
		if (!has_host(json_object_get(kept, "hosts"), host))
			return err_set(err, -EPERM,
				"network.secrets: '%s' is not kept for the host '%s': an admin of "
				"the account can keep it for that one, too",
				name, host);
	}
	if (json_is_true(json_object_get(secret, "plain")) &&
		!json_is_true(json_object_get(kept, "plain")))
		return err_set(err, -EPERM,
			"network.secrets: '%s' is kept for verified TLS: an admin of the account "
			"can keep it as plain",
			name);
	return 0;
}

static int add_value(
	struct call *call, const char *name, const json_t *kept, json_t *hidden, struct err *err)
{
	scoped_str struct str value = {0};
	int r = network_objects_open_secret(call, name, kept, &value, err);

	if (r == 0)
		json_array_append_new(json_object_get(hidden, "secrets"),
			json_pack("{s:s,s:s}", "name", name, "value", value.p));
	if (value.p)
		explicit_bzero(value.p, value.len);
	return r;
}

/* Fills in what it does not say, and adds its value to hidden. */
static int use_secret(struct call *call, json_t *secret, json_t *hidden, struct err *err)
{
	const char *name = json_string_value(json_object_get(secret, "name"));
	struct network_object which = {NETWORK_OBJECTS_SECRET, NULL, name};
	json_t *kept = NULL;
	int r;

	if (!name || !spec_network_is_variable(name))
		return err_set(err, -EINVAL, "network.secrets: want the name of a variable");
	r = find(call, &which, &kept, err);
	if (r == 0)
		return err_set(err, -EINVAL,
			"this account has no secret '%s': an admin makes it by POST /v1/secrets",
			name);
	if (r > 0 && !is_there(secret, "hosts")) {
		json_object_set(secret, "hosts", json_object_get(kept, "hosts"));
		if (!is_there(secret, "plain"))
			json_object_set(secret, "plain", json_object_get(kept, "plain"));
	}
	if (r > 0)
		r = check_hosts(name, secret, kept, err);
	if (r == 0)
		r = add_value(call, name, kept, hidden, err);
	json_decref(kept);
	return r < 0 ? r : 0;
}

static int use_secrets(struct call *call, json_t *list, json_t *hidden, struct err *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		json_t *object = NULL;
		int r = 0;

		if (text)
			r = read_text(text, &object, err);
		if (object)
			json_array_set_new(list, i, object);
		if (r == 0)
			r = use_secret(call, json_array_get(list, i), hidden, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- a new one ---- */

/* A network of another type than an object is left for who reads the spec to refuse. */
int network_use_in_spec(struct call *call, json_t *spec, json_t **ret_hidden, struct err *err)
{
	json_t *hidden = json_pack("{s:[]}", "secrets"), *network;
	int r = 0;

	if (!is_there(spec, "network"))
		json_object_set_new(spec, "network", json_object());
	network = json_object_get(spec, "network");
	if (json_is_object(network))
		r = add_rules(call, network, err);
	if (r == 0 && json_is_object(network))
		r = add_proxy(call, network, err);
	if (r == 0 && json_is_object(network))
		r = use_secrets(call, json_object_get(network, "secrets"), hidden, err);
	if (r == 0)
		*ret_hidden = hidden;
	else
		json_decref(hidden);
	return r;
}

int network_use_keep(struct call *call, const char *sandbox, const json_t *spec, struct err *err)
{
	const char *url = json_string_value(
		json_object_get(json_object_get(spec, "network"), "upstream_proxy"));
	struct network_object which = {NETWORK_OBJECTS_PROXY, sandbox, NETWORK_OBJECTS_OWN};
	json_t *object = NULL;
	int r;

	if (!url)
		return 0;
	r = network_objects_seal_proxy(call, url, &object, err);
	if (r == 0)
		r = network_objects_put(call, &which, object, err);
	json_decref(object);
	return r;
}

/* ---- one that goes on ---- */

static int read_meta(const struct call *call, const char *sandbox, json_t **ret, struct err *err)
{
	scoped_mem char *path =
		mem_printf("%s/records/%s/meta.json", call->server->state_dir, sandbox);
	scoped_str struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, path, META_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read the record of sandbox %s: %m", sandbox);
	*ret = json_loadb(text.p, text.len, 0, NULL);
	return *ret ? 0 : err_set(err, -EUCLEAN, "the record of sandbox %s is damaged", sandbox);
}

int network_use_hide_proxy(const char *url, json_t *hidden, struct err *err)
{
	struct spec_network net;
	int r;

	spec_network_init(&net);
	r = spec_network_parse_proxy(url, &net, err);
	if (r == 0 && net.proxy_user)
		json_object_set_new(hidden, "upstream_proxy",
			json_pack("{s:s,s:s,s:s}", "url", net.upstream_proxy, "user",
				net.proxy_user, "password", net.proxy_password));
	spec_network_done(&net);
	return r;
}

static int add_credentials(struct call *call, const char *sandbox, json_t *hidden, struct err *err)
{
	struct network_object which = {NETWORK_OBJECTS_PROXY, sandbox, NETWORK_OBJECTS_OWN};
	scoped_secret struct str url = {0};
	json_t *proxy = NULL;
	int r = find(call, &which, &proxy, err);

	if (r == 1) {
		r = network_objects_open_proxy(call, proxy, &url, err);
		if (r == 0)
			r = network_use_hide_proxy(url.p, hidden, err);
	}
	json_decref(proxy);
	return r;
}

int network_use_again(struct call *call, const char *sandbox, json_t **ret_hidden, struct err *err)
{
	json_t *hidden = json_pack("{s:[]}", "secrets"), *meta = NULL, *network;
	int r = read_meta(call, sandbox, &meta, err);

	network = json_object_get(json_object_get(meta, "spec"), "network");
	if (r == 0)
		r = use_secrets(call, json_object_get(network, "secrets"), hidden, err);
	if (r == 0)
		r = add_credentials(call, sandbox, hidden, err);
	json_decref(meta);
	if (r == 0)
		*ret_hidden = hidden;
	else
		json_decref(hidden);
	return r;
}

int network_use_copy(struct call *call, const char *from, const char *to, struct err *err)
{
	struct network_object which = {NETWORK_OBJECTS_PROXY, from, NETWORK_OBJECTS_OWN};
	json_t *proxy = NULL;
	int r = find(call, &which, &proxy, err);

	which.sandbox = to;
	if (r == 1)
		r = network_objects_put(call, &which, proxy, err);
	json_decref(proxy);
	return r;
}
