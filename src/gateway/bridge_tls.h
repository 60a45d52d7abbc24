/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on an open flow: refused, passed through or opened, by the name it asks for. */
#ifndef GATEWAY_BRIDGE_TLS_H
#define GATEWAY_BRIDGE_TLS_H

#include <stdbool.h>

#include "gateway/bridge_internal.h"
#include "proto/tls_hello.h"

/* The hello is whole, and still in the socket. As bridge_look(). */
bool bridge_tls_begin(struct bridge *bridge, const struct tls_hello *hello);

#endif
