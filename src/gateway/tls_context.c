/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSL calls while an end is at work: its reads and writes, and the callbacks of its context. */
#include "gateway/tls_end_internal.h"

#include <stdlib.h>
#include <string.h>

static int bio_read(BIO *bio, char *p, int len)
{
	struct tls_end *e = BIO_get_data(bio);
	size_t n = (size_t)len < e->in.len ? (size_t)len : e->in.len;

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(p, e->in.p, n);
	e->in = (struct slice){.p = e->in.p + n, .len = e->in.len - n};
	return (int)n;
}

static int bio_write(BIO *bio, const char *p, int len)
{
	struct tls_end *e = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	tls_end_add_cipher(e, p, (size_t)len);
	return len;
}

static long bio_ctrl(BIO *bio, int what, long number, void *p)
{
	return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *method;

	if (!method) {
		method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tls_end");
		if (!method || !BIO_meth_set_read(method, bio_read) ||
			!BIO_meth_set_write(method, bio_write) ||
			!BIO_meth_set_ctrl(method, bio_ctrl))
			abort(); /* out of memory */
	}
	return method;
}

static void on_info(const SSL *ssl, int where, int value)
{
	struct tls_end *e = SSL_get_app_data(ssl);

	if (e && (where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT && value >> 8 == SSL3_AL_FATAL)
		e->alert = value & 0xff;
}

static int on_certificate_asked(SSL *ssl, X509 **ret_certificate, EVP_PKEY **ret_key)
{
	struct tls_end *e = SSL_get_app_data(ssl);

	e->was_asked = true;
	return 0;
}

static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
	const unsigned char *offer, unsigned len, void *data)
{
	struct tls_end *e = SSL_get_app_data(ssl);
	size_t want = strlen(e->alpn);

	for (unsigned at = 0; at < len && offer[at] < len - at; at += 1U + offer[at])
		if (want > 0 && offer[at] == want && memcmp(offer + at + 1, e->alpn, want) == 0) {
			*ret = offer + at + 1;
			*ret_len = offer[at];
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_NOACK;
}

SSL_CTX *tls_end_context(const SSL_METHOD *method)
{
	SSL_CTX *ctx;

	/* Nothing of the host's OpenSSL settings is meant for us, and without them it starts faster. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ctx = SSL_CTX_new(method);
	if (!ctx)
		return NULL;
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(
		ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_info_callback(ctx, on_info);
	SSL_CTX_set_client_cert_cb(ctx, on_certificate_asked);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	return ctx;
}

BIO *tls_end_bio(struct tls_end *e)
{
	BIO *bio = BIO_new(bio_method());

	if (bio) {
		BIO_set_data(bio, e);
		BIO_set_init(bio, 1);
	}
	return bio;
}
