/* SPDX-License-Identifier: Apache-2.0 */
/* What listeners speak TLS with: 1.2 and 1.3, a certificate with its chain and its key. It can be renewed while they listen:
 * connections that are there keep what they began with. */
#ifndef SERVER_LISTENER_TLS_H
#define SERVER_LISTENER_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "util/err.h"
#include "util/scoped.h"

struct listener_tls {
	SSL_CTX *context; /* of the next connection */
};

/* Of texts in PEM. -EINVAL with a sentence where they are none, do not belong together, or are of no use now: of a time that
 * has not come or (unless may_be_over) is over. *ret is the caller's. */
int listener_tls_new(const char *cert, const char *key, bool may_be_over, struct listener_tls **ret,
	struct err *err);
void listener_tls_free(struct listener_tls *tls);
SCOPED_TYPE(listener_tls)

/* From now on what is in from, which holds the old one then. */
void listener_tls_renew(struct listener_tls *tls, struct listener_tls *from);

#endif
