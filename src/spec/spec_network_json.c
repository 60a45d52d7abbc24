/* SPDX-License-Identifier: Apache-2.0 */
/* The network's JSON: on the wire, in a spec file, in a record. docs/spec.md names the keys. */
#include <errno.h>
#include <string.h>

#include "spec/spec_internal.h"
#include "spec/spec_network_parse.h"
#include "util/digest.h"
#include "util/mem.h"

#define SETS_MAX    64
#define SECRETS_MAX 64
#define TEXTS_MAX   1024 /* maps, published ports, resolvers */

typedef int (*parse_fn)(const char *text, struct spec_network *net, struct err *err);

/* A list of texts, or one text, each as in an option. */
static int read_texts(const json_t *v, const char *name, parse_fn parse, struct spec_network *net,
	struct err *err)
{
	size_t n = json_is_array(v) ? json_array_size(v) : 1;

	if (n > TEXTS_MAX)
		return err_set(err, -EINVAL, "'%s' has more than %d items", name, TEXTS_MAX);
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_is_array(v) ? json_array_get(v, i) : v;
		int r;

		if (!json_is_string(item))
			return err_set(err, -EINVAL, "'%s' must be a list of texts", name);
		r = parse(json_string_value(item), net, err);
		if (r < 0)
			return err_wrap(err, r, "%s", name);
	}
	return 0;
}

static int read_net(void *target, const json_t *v, struct err *err)
{
	struct spec_network *net = target;
	const char *text = json_string_value(v);

	net->has_net = true;
	return spec_network_parse_net(text ? text : "", &net->net, err);
}

static int read_maps(void *target, const json_t *v, struct err *err)
{
	struct spec_network *net = target;

	for (size_t i = 0; i < net->n_maps; i++)
		spec_host_map_done(&net->maps[i]);
	net->n_maps = 0;
	return read_texts(v, "host_map", spec_network_parse_map, net, err);
}

static int read_resolvers(void *target, const json_t *v, struct err *err)
{
	struct spec_network *net = target;

	spec_words_done(&net->resolvers);
	return read_texts(v, "resolver", spec_network_parse_resolver, net, err);
}

static int read_tls(void *target, const json_t *v, struct err *err)
{
	struct spec_network *net = target;

	net->tls = SPEC_TLS_INTERCEPT;
	spec_words_done(&net->tls_passthrough);
	return read_texts(v, "tls", spec_network_parse_tls, net, err);
}

static int read_proxy(void *target, const json_t *v, struct err *err)
{
	const char *text = json_string_value(v);

	return spec_network_parse_proxy(text ? text : "", target, err);
}

static int read_publish(void *target, const json_t *v, struct err *err)
{
	struct spec_network *net = target;

	for (size_t i = 0; i < net->n_publish; i++)
		free(net->publish[i].address);
	net->n_publish = 0;
	return read_texts(v, "publish", spec_network_parse_publish, net, err);
}

/* It is a key of ours in JSON then. */
static bool is_set_name(const char *name)
{
	size_t n = strspn(name + (*name == '@'), "abcdefghijklmnopqrstuvwxyz0123456789-");

	return *name == '@' && n > 0 && !name[n + 1];
}

static int read_sets(void *target, const json_t *v, struct err *err)
{
	struct spec_network *net = target;
	const char *name;
	json_t *rules;

	if (!json_is_object(v) || json_object_size(v) > SETS_MAX)
		return err_set(err, -EINVAL, "'sets' must be an object of at most %d", SETS_MAX);
	json_object_foreach((json_t *)v, name, rules)
	{
		struct spec_set *set;

		if (!is_set_name(name) || !json_is_array(rules))
			return err_set(err, -EINVAL,
				"set '%s' must be a list of rules under a name such as @mine",
				name);
		set = spec_network_add_set(net, name);
		for (size_t i = 0; i < json_array_size(rules); i++) {
			const char *rule = json_string_value(json_array_get(rules, i));

			if (!rule)
				return err_set(
					err, -EINVAL, "set '%s' must be a list of rules", name);
			spec_words_add(&set->rules, rule);
		}
	}
	return 0;
}

static const struct spec_json_key secret_keys[] = {
	{"name", SPEC_JSON_TEXT, offsetof(struct spec_secret, name)},
	{"hosts", SPEC_JSON_WORDS, offsetof(struct spec_secret, hosts)},
	{"plain", SPEC_JSON_BOOL, offsetof(struct spec_secret, plain)},
	{"pass", SPEC_JSON_WORDS, offsetof(struct spec_secret, pass)},
	{"stand_in", SPEC_JSON_TEXT, offsetof(struct spec_secret, stand_in)},
	{NULL},
};

static int read_secret(struct spec_network *net, const json_t *v, struct err *err)
{
	struct spec_secret secret = {0};
	int r;

	if (json_is_string(v))
		return spec_network_parse_secret(json_string_value(v), net, err);
	r = spec_json_read(&secret, secret_keys, v, err);
	if (r == 0 && (!secret.name || secret.hosts.n == 0))
		r = err_set(err, -EINVAL, "want name and hosts");
	if (r == 0 && spec_network_secret(net, secret.name))
		r = err_set(err, -EEXIST, "'%s' is named twice", secret.name);
	if (r < 0) {
		spec_secret_done(&secret);
		return r;
	}
	net->secrets = mem_grow(net->secrets, net->n_secrets + 1, sizeof(secret));
	net->secrets[net->n_secrets++] = secret;
	return 0;
}

static int read_secrets(void *target, const json_t *v, struct err *err)
{
	struct spec_network *net = target;

	if (!json_is_array(v) || json_array_size(v) > SECRETS_MAX)
		return err_set(err, -EINVAL, "'secrets' must be a list of at most %d", SECRETS_MAX);
	for (size_t i = 0; i < net->n_secrets; i++)
		spec_secret_done(&net->secrets[i]);
	net->n_secrets = 0;
	for (size_t i = 0; i < json_array_size(v); i++) {
		int r = read_secret(net, json_array_get(v, i), err);

		if (r < 0)
			return err_wrap(err, r, "secret %zu", i + 1);
	}
	return 0;
}

static const struct spec_json_key network_keys[] = {
	{"net", SPEC_JSON_CALL, .read = read_net},
	{"allow", SPEC_JSON_WORDS, offsetof(struct spec_network, allow)},
	{"deny", SPEC_JSON_WORDS, offsetof(struct spec_network, deny)},
	{"sets", SPEC_JSON_CALL, .read = read_sets},
	{"shadow", SPEC_JSON_BOOL, offsetof(struct spec_network, shadow)},
	{"ask", SPEC_JSON_BOOL, offsetof(struct spec_network, ask)},
	{"host_map", SPEC_JSON_CALL, .read = read_maps},
	{"resolver", SPEC_JSON_CALL, .read = read_resolvers},
	{"tls", SPEC_JSON_CALL, .read = read_tls},
	{"upstream_ca", SPEC_JSON_TEXT, offsetof(struct spec_network, upstream_ca)},
	{"upstream_proxy", SPEC_JSON_CALL, .read = read_proxy},
	{"control_plane", SPEC_JSON_BOOL, offsetof(struct spec_network, control_plane)},
	{"record_responses", SPEC_JSON_BOOL, offsetof(struct spec_network, record_responses)},
	{"body_limit", SPEC_JSON_SIZE, offsetof(struct spec_network, body_limit)},
	{"publish", SPEC_JSON_CALL, .read = read_publish},
	{"secrets", SPEC_JSON_CALL, .read = read_secrets},
	{NULL},
};

int spec_network_read_json(struct spec_network *net, const json_t *object, struct err *err)
{
	int r = spec_json_read(net, network_keys, object, err);

	return r < 0 ? err_wrap(err, r, "network") : 0;
}

int spec_network_read(struct spec_network *net, struct slice json, struct err *err)
{
	scoped_json json_t *root = NULL;
	int r = spec_json_parse(json, &root, err);

	return r < 0 ? err_wrap(err, r, "network") : spec_network_read_json(net, root, err);
}

static void write_sets(struct jsonw *j, const struct spec_network *net)
{
	jsonw_key(j, "sets");
	jsonw_object(j);
	for (size_t i = 0; i < net->n_sets; i++)
		spec_json_write_words(j, net->sets[i].name, &net->sets[i].rules);
	jsonw_object_end(j);
}

static void write_tls(struct jsonw *j, const struct spec_network *net)
{
	jsonw_key(j, "tls");
	jsonw_array(j);
	jsonw_text(j, spec_tls_name(net->tls));
	for (size_t i = 0; i < net->tls_passthrough.n; i++) {
		scoped_mem char *text = mem_printf("%s=passthrough", net->tls_passthrough.items[i]);

		jsonw_text(j, text);
	}
	jsonw_array_end(j);
}

static void write_places(struct jsonw *j, const struct spec_network *net)
{
	scoped_str struct str text = {0};

	jsonw_key(j, "host_map");
	jsonw_array(j);
	for (size_t i = 0; i < net->n_maps; i++) {
		str_reset(&text);
		spec_network_format_map(&text, &net->maps[i]);
		jsonw_slice(j, str_slice(&text));
	}
	jsonw_array_end(j);
	jsonw_key(j, "publish");
	jsonw_array(j);
	for (size_t i = 0; i < net->n_publish; i++) {
		str_reset(&text);
		spec_network_format_publish(&text, &net->publish[i]);
		jsonw_slice(j, str_slice(&text));
	}
	jsonw_array_end(j);
}

static void write_secrets(struct jsonw *j, const struct spec_network *net, bool for_record)
{
	jsonw_key(j, "secrets");
	jsonw_array(j);
	for (size_t i = 0; i < net->n_secrets; i++) {
		const struct spec_secret *secret = &net->secrets[i];

		jsonw_object(j);
		jsonw_ktext(j, "name", secret->name);
		spec_json_write_words(j, "hosts", &secret->hosts);
		jsonw_kbool(j, "plain", secret->plain);
		if (secret->pass.n)
			spec_json_write_words(j, "pass", &secret->pass);
		if (!for_record)
			spec_json_write_given(j, "stand_in", secret->stand_in);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
}

static void write_ca(struct jsonw *j, const char *pem, bool for_record)
{
	char hex[DIGEST_HEX_SIZE];
	scoped_mem char *text = NULL;

	if (!pem || !for_record) {
		spec_json_write_given(j, "upstream_ca", pem);
		return;
	}
	digest_of(pem, strlen(pem), hex);
	text = mem_printf("sha256:%s", hex);
	jsonw_ktext(j, "upstream_ca", text);
}

void spec_network_write(struct jsonw *j, const struct spec_network *net, bool for_record)
{
	jsonw_object(j);
	jsonw_ktext(j, "net", spec_net_name(net->net));
	spec_json_write_words(j, "allow", &net->allow);
	spec_json_write_words(j, "deny", &net->deny);
	write_sets(j, net);
	jsonw_kbool(j, "shadow", net->shadow);
	jsonw_kbool(j, "ask", net->ask);
	spec_json_write_words(j, "resolver", &net->resolvers);
	write_tls(j, net);
	write_ca(j, net->upstream_ca, for_record);
	spec_json_write_given(j, "upstream_proxy", net->upstream_proxy);
	jsonw_kbool(j, "control_plane", net->control_plane);
	jsonw_kbool(j, "record_responses", net->record_responses);
	jsonw_kint(j, "body_limit", net->body_limit);
	write_places(j, net);
	write_secrets(j, net, for_record);
	jsonw_object_end(j);
}
