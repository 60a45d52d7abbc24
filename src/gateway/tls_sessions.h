/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of connections to upstream whose certificates were verified, kept for a while so that the next connection of
 * the same kind can take one up (RFC 8446, 2.2; RFC 5077): upstream then proves that it is the one of before by a secret that it
 * alone shares, instead of by its certificate. They belong to the roots they were verified by, and end with them. */
#ifndef GATEWAY_TLS_SESSIONS_H
#define GATEWAY_TLS_SESSIONS_H

#include <openssl/ssl.h>

#include "util/slice.h"

struct tls_sessions;

struct tls_sessions *tls_sessions_new(void);
void tls_sessions_free(struct tls_sessions *sessions);

/* Key: all by which the certificate was judged, and what was offered. Takes the session over. */
void tls_sessions_add(struct tls_sessions *sessions, struct slice key, SSL_SESSION *session);

/* One that can be taken up now, the newest first; the caller's. Of TLS 1.3 each is given out once (RFC 8446, C.4). NULL:
 * there is none, or its certificate has run out meanwhile. */
SSL_SESSION *tls_sessions_take(struct tls_sessions *sessions, struct slice key);

#endif
