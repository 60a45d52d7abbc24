/* SPDX-License-Identifier: Apache-2.0 */
/* One certificate for one name (RFC 5280), signed by the sandbox's authority. */
#ifndef GATEWAY_LEAF_H
#define GATEWAY_LEAF_H

#include <openssl/x509.h>

#include "gateway/ca.h"

/* Valid from a day ago (clocks inside may be behind) for less than 30. NULL where OpenSSL refuses. */
X509 *leaf_new(const struct ca_name *name, EVP_PKEY *key, const X509 *issuer, EVP_PKEY *issuer_key);

#endif
