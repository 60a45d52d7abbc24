/* SPDX-License-Identifier: Apache-2.0 */
/* What an account keeps about networks: the rules and the upstream proxy of new sandboxes, secrets. Objects of the store;
 * what nobody may read is sealed in them (secret_box.h). */
#ifndef SERVER_NETWORK_OBJECTS_H
#define SERVER_NETWORK_OBJECTS_H

#include <jansson.h>

#include "server/call.h"

/* An object of the caller's account. */
struct network_object {
	const char *kind, *sandbox, *name; /* sandbox NULL: the account's own */
};
#define NETWORK_OBJECTS_RULES  "network-rules"
#define NETWORK_OBJECTS_PROXY  "upstream-proxy"
#define NETWORK_OBJECTS_SECRET "secret"
#define NETWORK_OBJECTS_OWN    "default" /* the name where there is one of a kind */

/* The caller's; -ENOENT without a sentence where there is none. */
int network_objects_get(
	struct call *call, const struct network_object *which, json_t **ret, struct err *err);
int network_objects_put(struct call *call, const struct network_object *which, const json_t *object,
	struct err *err);
int network_objects_remove(struct call *call, const struct network_object *which, struct err *err);

/* Whether the configuration lets the caller's account name private places. The launcher asks itself, too. */
bool network_objects_may_private(const struct call *call);

/* A secret's object, with its value sealed for these hosts: {hosts, plain, created_at, sealed}. The caller's. */
int network_objects_seal_secret(struct call *call, const char *name, const json_t *hosts,
	bool plain, const char *value, json_t **ret, struct err *err);
/* Its value, which the caller overwrites. */
int network_objects_open_secret(struct call *call, const char *name, const json_t *object,
	struct str *value, struct err *err);

/* A proxy's object {url, sealed} of http://[USER:PASSWORD@]HOST:PORT: url has no credentials, sealed is there where it has
 * some. The caller's. */
int network_objects_seal_proxy(struct call *call, const char *url, json_t **ret, struct err *err);
/* The whole URL, which the caller overwrites. */
int network_objects_open_proxy(
	struct call *call, const json_t *object, struct str *url, struct err *err);

#endif
