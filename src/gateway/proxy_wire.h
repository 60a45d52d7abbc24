/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to an upstream HTTP proxy, and what it answers (RFC 9110, 9.3.6; RFC 7617). Pure. */
#ifndef GATEWAY_PROXY_WIRE_H
#define GATEWAY_PROXY_WIRE_H

#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define PROXY_WIRE_HEAD_MAX 16384 /* of an answer */

/* "http://HOST:PORT", as spec_network_check() leaves it. -EINVAL. */
int proxy_wire_url(const char *url, struct str *ret_host, uint16_t *ret_port);
/* user may be NULL. host: a name, or a numeric address. */
void proxy_wire_connect(
	struct str *out, const char *host, uint16_t port, const char *user, const char *password);
/* What has come so far: 0 where its head is whole and says yes, -EAGAIN where there is more to come; else what
 * connect() would say: -EACCES (it wants other credentials), -EHOSTUNREACH (it could not get there), -EPROTO. */
int proxy_wire_answer(struct slice in);

#endif
