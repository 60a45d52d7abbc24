/* SPDX-License-Identifier: Apache-2.0 */
/* TLS towards upstream: who is trusted, and connections whose certificates are verified before anything is sent. */
#ifndef GATEWAY_TLS_CLIENT_H
#define GATEWAY_TLS_CLIENT_H

#include <stdint.h>

#include "gateway/tls_end.h"
#include "util/err.h"

struct tls_client;

/* Trusts the host's roots and, where given, those in extra (PEM; borrowed for the call). The roots are read one by
 * one when somebody presents a certificate of theirs, from the hashed folder: roots_dir, or NULL for OpenSSL's
 * own. Only where that holds none is the whole bundle read, here. -EINVAL where extra holds no certificate. */
int tls_client_new(
	const char *roots_dir, const char *extra, struct tls_client **ret_client, struct err *err);
void tls_client_free(struct tls_client *client);
SCOPED_TYPE(tls_client)

struct tls_target {
	const char *host;       /* whom the certificate must name; NULL: the address */
	const uint8_t *address; /* 16 bytes, IPv4 mapped; looked at without a host */
	uint16_t port;          /* with the above: what a session may be taken up for */
	struct slice alpn;      /* what to offer, as it is on the wire; empty: nothing */
};

/* Makes the first flight. NULL where OpenSSL refuses: no memory, or an offer that is none. */
struct tls_end *tls_client_connect(struct tls_client *client, const struct tls_target *target);

#endif
