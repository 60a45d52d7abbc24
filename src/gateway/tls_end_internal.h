/* SPDX-License-Identifier: Apache-2.0 */
/* For those who make ends: what both kinds have in common. */
#ifndef GATEWAY_TLS_END_INTERNAL_H
#define GATEWAY_TLS_END_INTERNAL_H

#include <openssl/ssl.h>

#include "gateway/tls_end.h"
#include "util/str.h"

#define TLS_END_ALPN_MAX   255 /* of one name: RFC 7301 */
#define TLS_END_REASON_MAX 192

struct tls_end {
	SSL *ssl;
	enum tls_end_state state;
	enum tls_end_failure failure;
	struct slice in; /* what put() was given and OpenSSL has not read yet */
	bool in_end;     /* the socket's end of file */
	struct str out;
	size_t out_sent;
	char *plain; /* RECORD_MAX bytes, or NULL where nothing waits */
	size_t plain_at, plain_len;
	bool has_close, has_sent_close, was_asked;
	int alert;                       /* that came, -1 without */
	char alpn[TLS_END_ALPN_MAX + 1]; /* a server's: what to agree to, then what was agreed on */
	char reason[TLS_END_REASON_MAX];
	struct str session_key; /* a client's: what its sessions are kept under */
};

/* A context with what holds for every end: versions, no sessions, small buffers. NULL where OpenSSL refuses.
 * Wakes OpenSSL up where that was not done. */
SSL_CTX *tls_end_context(const SSL_METHOD *method);

/* alpn: what a server agrees to if it is offered, "" or NULL for nothing; clients offer by SSL_set_alpn_protos().
 * NULL where OpenSSL refuses. What is particular is set on its ssl; then tls_end_start(). */
struct tls_end *tls_end_new(SSL_CTX *ctx, bool is_server, const char *alpn);
void tls_end_start(struct tls_end *end);
/* More for the socket. */
void tls_end_add_cipher(struct tls_end *end, const void *p, size_t len);
/* The way to e's bytes; NULL where there is no memory. */
BIO *tls_end_bio(struct tls_end *end);

/* The words of the last thing OpenSSL had to say, which are then forgotten. */
const char *tls_end_last_words(void);

#endif
