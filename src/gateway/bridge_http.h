/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP on an open flow: asks the rules about each request, and makes events of what went by. */
#ifndef GATEWAY_BRIDGE_HTTP_H
#define GATEWAY_BRIDGE_HTTP_H

#include "gateway/bridge_internal.h"
#include "gateway/http_machine.h"

/* What a machine that speaks HTTP needs for this flow. verified: inside TLS whose certificate was found good. */
struct http_setup bridge_http_setup(struct bridge *bridge, bool is_tls, bool verified);

#endif
