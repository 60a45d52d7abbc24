/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tls_setup.h"

#include <jansson.h>
#include <string.h>

#include "gateway/ca.h"
#include "gateway/gateway_internal.h"
#include "gateway/tls_client.h"

/* The line {"ca":{"key","certificate"}} of SECRETS; NULL: there is none. */
static json_t *read_authority(const struct str *secrets)
{
	const char *p = secrets->p, *end;
	json_t *found = NULL;

	for (; p && *p && !found; p = *end ? end + 1 : end) {
		json_t *line;

		end = strchrnul(p, '\n');
		line = json_loadb(p, (size_t)(end - p), JSON_REJECT_DUPLICATES, NULL);
		found = json_incref(json_object_get(line, "ca"));
		json_decref(line);
	}
	return found;
}

static struct slice text_of(const json_t *object, const char *key)
{
	return slice_of(json_string_value(json_object_get(object, key)));
}

bool tls_setup_can(struct gateway *gw)
{
	json_t *authority = read_authority(&gw->config.secrets);
	bool is_there = authority != NULL;

	json_decref(authority);
	return is_there;
}

struct ca *tls_setup_ca(struct gateway *gw)
{
	json_t *authority = gw->ca ? NULL : read_authority(&gw->config.secrets);

	if (authority)
		(void)ca_new(text_of(authority, "key"), text_of(authority, "certificate"), &gw->ca,
			NULL); /* whoever asked says that TLS could not be opened */
	json_decref(authority);
	return gw->ca;
}

struct tls_client *tls_setup_client(struct gateway *gw)
{
	if (!gw->tls_client)
		(void)tls_client_new(
			NULL, gw->config.network.upstream_ca, &gw->tls_client, NULL); /* as above */
	return gw->tls_client;
}
