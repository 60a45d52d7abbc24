/* SPDX-License-Identifier: Apache-2.0 */
/* The authority that one sandbox trusts: TLS towards the program inside, by a certificate made for the name it
 * asked for. The authority's key and certificate come from whoever started the sandbox; certificates for names
 * share one key of their own, are valid under 30 days and are kept while they are used (the least used go first).
 */
#ifndef GATEWAY_CA_H
#define GATEWAY_CA_H

#include <stdint.h>

#include "gateway/tls_end.h"
#include "util/err.h"

struct ca;

/* From the P-256 key in hexadecimal and the certificate as base64 of its DER, as they are in SECRETS.
 * -EBADMSG where they are none or do not belong together. */
int ca_new(
	struct slice key_hex, struct slice certificate_base64, struct ca **ret_ca, struct err *err);
void ca_free(struct ca *ca);
SCOPED_TYPE(ca)

/* Whom to be for the program inside. One of them at least. */
struct ca_name {
	const char *host;       /* lower case, no final dot */
	const uint8_t *address; /* 16 bytes, IPv4 mapped: for one who asked for no name */
};

/* An end that waits for the program's first bytes. alpn: what to agree to if it is offered; "" or NULL: nothing.
 * NULL where OpenSSL refuses: no memory, or a name that fits in no certificate. */
struct tls_end *ca_accept(struct ca *ca, const struct ca_name *name, const char *alpn);

#endif
