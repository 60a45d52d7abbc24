/* SPDX-License-Identifier: Apache-2.0 */
/* What only the gateway may know, as one line of JSON. */
#include <errno.h>
#include <string.h>

#include "spec/spec_internal.h"
#include "spec/spec_network_parse.h"
#include "util/mem.h"

static bool has_hidden(const struct spec_network *net)
{
	for (size_t i = 0; i < net->n_secrets; i++)
		if (net->secrets[i].value)
			return true;
	return net->proxy_user != NULL;
}

bool spec_hidden_write(struct str *out, const struct spec_network *net)
{
	struct jsonw j = jsonw_to(out);

	if (!has_hidden(net))
		return false;
	jsonw_object(&j);
	jsonw_key(&j, "secrets");
	jsonw_array(&j);
	for (size_t i = 0; i < net->n_secrets; i++) {
		if (!net->secrets[i].value)
			continue;
		jsonw_object(&j);
		jsonw_ktext(&j, "name", net->secrets[i].name);
		jsonw_ktext(&j, "value", net->secrets[i].value);
		jsonw_object_end(&j);
	}
	jsonw_array_end(&j);
	if (net->proxy_user) {
		jsonw_key(&j, "upstream_proxy");
		jsonw_object(&j);
		jsonw_ktext(&j, "user", net->proxy_user);
		jsonw_ktext(&j, "password", net->proxy_password);
		jsonw_object_end(&j);
	}
	jsonw_object_end(&j);
	str_putc(out, '\n');
	return true;
}

static void forget(char **at)
{
	if (*at)
		explicit_bzero(*at, strlen(*at));
	free(*at);
	*at = NULL;
}

void spec_hidden_forget(struct spec_network *net)
{
	for (size_t i = 0; i < net->n_secrets; i++)
		forget(&net->secrets[i].value);
	forget(&net->proxy_user);
	forget(&net->proxy_password);
}

static void replace(char **at, const char *value)
{
	forget(at);
	*at = mem_dup(value);
}

/* The proxy was changed since these were kept. */
static bool is_of_another(const struct spec_network *net, const json_t *proxy)
{
	const char *url = json_string_value(json_object_get(proxy, "url"));

	return url && (!net->upstream_proxy || strcmp(url, net->upstream_proxy) != 0);
}

static int read_credentials(struct spec_network *net, const json_t *proxy, struct err *err)
{
	const char *user = json_string_value(json_object_get(proxy, "user"));
	const char *password = json_string_value(json_object_get(proxy, "password"));

	if (!user || !password)
		return err_set(err, -EINVAL, "credentials of the upstream proxy are broken");
	replace(&net->proxy_user, user);
	replace(&net->proxy_password, password);
	return 0;
}

int spec_hidden_read(struct spec_network *net, struct slice json, struct err *err)
{
	scoped_json json_t *root = NULL;
	const json_t *secrets, *proxy;

	/* The parser's own words may show what they stand beside. */
	if (spec_json_parse(json, &root, NULL) < 0)
		return err_set(err, -EINVAL, "what is hidden of the network is not JSON");
	secrets = json_object_get(root, "secrets");
	for (size_t i = 0; i < json_array_size(secrets); i++) {
		const json_t *item = json_array_get(secrets, i);
		const char *name = json_string_value(json_object_get(item, "name"));
		const char *value = json_string_value(json_object_get(item, "value"));
		struct spec_secret *secret = name ? spec_network_secret(net, name) : NULL;

		if (!secret || !value)
			return err_set(err, -EINVAL, "a value without its secret");
		replace(&secret->value, value);
	}
	proxy = json_object_get(root, "upstream_proxy");
	return !proxy || is_of_another(net, proxy) ? 0 : read_credentials(net, proxy, err);
}

void spec_hidden_write_proxy(struct str *out, const struct spec_network *net)
{
	struct jsonw j = jsonw_to(out);

	if (!net->upstream_proxy) {
		str_puts(out, "null");
		return;
	}
	jsonw_object(&j);
	jsonw_ktext(&j, "url", net->upstream_proxy);
	if (net->proxy_user) {
		jsonw_ktext(&j, "user", net->proxy_user);
		jsonw_ktext(&j, "password", net->proxy_password);
	}
	jsonw_object_end(&j);
}

static void forget_proxy(struct spec_network *net)
{
	free(take(&net->upstream_proxy));
	forget(&net->proxy_user);
	forget(&net->proxy_password);
}

int spec_hidden_read_proxy(struct spec_network *net, struct slice json, struct err *err)
{
	scoped_json json_t *root = NULL;
	struct spec_network next = {0};
	const char *url;
	int r = 0;

	if (!slice_is(json, "null")) {
		if (spec_json_parse(json, &root, NULL) < 0)
			return err_set(err, -EINVAL, "the upstream proxy is not JSON");
		url = json_string_value(json_object_get(root, "url"));
		r = spec_network_parse_proxy(url ? url : "", &next, err);
	}
	if (r == 0 && json_object_get(root, "user"))
		r = read_credentials(&next, root, err);
	if (r == 0) {
		forget_proxy(net);
		net->upstream_proxy = take(&next.upstream_proxy);
		net->proxy_user = take(&next.proxy_user);
		net->proxy_password = take(&next.proxy_password);
	}
	forget_proxy(&next);
	return r;
}
