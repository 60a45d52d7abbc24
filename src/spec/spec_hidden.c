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

int spec_hidden_read(struct spec_network *net, struct slice json, struct err *err)
{
	scoped_json json_t *root = NULL;
	const json_t *secrets, *proxy;
	const char *user, *password;

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
	user = json_string_value(json_object_get(proxy, "user"));
	password = json_string_value(json_object_get(proxy, "password"));
	if (proxy && (!user || !password))
		return err_set(err, -EINVAL, "credentials of the upstream proxy are broken");
	if (proxy) {
		replace(&net->proxy_user, user);
		replace(&net->proxy_password, password);
	}
	return 0;
}
