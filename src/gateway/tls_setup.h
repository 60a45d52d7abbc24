/* SPDX-License-Identifier: Apache-2.0 */
/* What opening TLS needs, made when the first flow does: whom we trust, and whom the sandbox trusts. */
#ifndef GATEWAY_TLS_SETUP_H
#define GATEWAY_TLS_SETUP_H

#include <stdbool.h>

struct gateway;
struct tls_client;
struct ca;

bool tls_setup_can(struct gateway *gw); /* there is an authority that the sandbox trusts */
struct tls_client *tls_setup_client(struct gateway *gw); /* NULL: it could not be made */
struct ca *tls_setup_ca(struct gateway *gw);             /* likewise */

#endif
