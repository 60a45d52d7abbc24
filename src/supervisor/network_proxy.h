/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream proxy of a running sandbox, changed on request. Its credentials pass through on their way to the gateway and
 * into a memory file for the next one: the spec here has none. */
#ifndef SUPERVISOR_NETWORK_PROXY_H
#define SUPERVISOR_NETWORK_PROXY_H

#include <jansson.h>

#include "supervisor/supervisor_internal.h"

/* The request "net-proxy": "proxy", as spec_hidden_write_proxy() makes it, and "actor". New connections take it once this has
 * returned, open ones go on. -EINVAL with a sentence where it is none, and nothing has changed. */
int network_proxy_request(struct supervisor *sup, const json_t *body, struct err *err);

#endif
