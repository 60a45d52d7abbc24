/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listener_tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/mem.h"

#define DATE_LEN 32

/* OpenSSL's own word for what it does not take. */
static int refuse(struct err *err, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());
	int r = err_set(err, -EINVAL, "%s: %s", what, why ? why : "it cannot be used");

	ERR_clear_error();
	return r;
}

/* ---- the certificate ---- */

/* When a certificate begins or ends, as a day. */
static const char *day_of(const ASN1_TIME *at, char text[DATE_LEN])
{
	struct tm tm = {0};

	if (ASN1_TIME_to_tm(at, &tm) != 1 || strftime(text, DATE_LEN, "%Y-%m-%d", &tm) == 0)
		return "a day that cannot be read";
	return text;
}

static int check_time(const X509 *cert, bool may_be_over, struct err *err)
{
	char text[DATE_LEN];

	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		return err_set(err, -EINVAL,
			"the certificate of --tls-cert begins on %s: is the host's clock right?",
			day_of(X509_get0_notBefore(cert), text));
	if (!may_be_over && X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
		return err_set(err, -EINVAL, "the certificate of --tls-cert ended on %s: renew it",
			day_of(X509_get0_notAfter(cert), text));
	return 0;
}

/* The end of the text is the one error that is none. */
static bool is_end(void)
{
	unsigned long e = ERR_peek_last_error();

	ERR_clear_error();
	return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

static int use_chain(SSL_CTX *context, BIO *in, struct err *err)
{
	X509 *next;

	while ((next = PEM_read_bio_X509(in, NULL, NULL, NULL)))
		if (SSL_CTX_add0_chain_cert(context, next) != 1) {
			X509_free(next);
			return refuse(err, "--tls-cert, behind the first certificate");
		}
	return is_end() ? 0
	                : err_set(err, -EINVAL,
				  "--tls-cert: what stands behind the first certificate is none");
}

static int use_cert(SSL_CTX *context, BIO *in, bool may_be_over, struct err *err)
{
	X509 *cert = PEM_read_bio_X509(in, NULL, NULL, NULL);
	int r;

	if (!cert) {
		ERR_clear_error();
		return err_set(err, -EINVAL, "--tls-cert: there is no certificate in it, as PEM");
	}
	r = check_time(cert, may_be_over, err);
	if (r == 0 && SSL_CTX_use_certificate(context, cert) != 1)
		r = refuse(err, "the certificate of --tls-cert");
	X509_free(cert);
	return r < 0 ? r : use_chain(context, in, err);
}

/* ---- its key ---- */

/* Nobody is there who could be asked. */
static int note_passphrase(char *buf, int size, int is_writing, void *has_passphrase)
{
	*(bool *)has_passphrase = true;
	return -1;
}

static int use_key(SSL_CTX *context, BIO *in, struct err *err)
{
	bool has_passphrase = false;
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, note_passphrase, &has_passphrase);
	int r = 0;

	if (has_passphrase)
		r = err_set(
			err, -EINVAL, "--tls-key: the key has a passphrase: store it without one");
	else if (!key)
		r = err_set(err, -EINVAL, "--tls-key: there is no private key in it, as PEM");
	else if (SSL_CTX_use_PrivateKey(context, key) != 1 ||
		 SSL_CTX_check_private_key(context) != 1)
		r = err_set(err, -EINVAL,
			"the key of --tls-key is not that of the certificate of --tls-cert");
	EVP_PKEY_free(key);
	ERR_clear_error();
	return r;
}

/* ---- both ---- */

/* A client that wants to speak something else here is not answered in HTTP: it may be led here to have that misread. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
	const unsigned char *offered, unsigned offered_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen = NULL;

	if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof(ours) - 1, offered, offered_len) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *new_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context)
		return NULL;
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* most are streams that are silent */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* there are tickets */
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	return context;
}

int listener_tls_new(const char *cert, const char *key, bool may_be_over, struct listener_tls **ret,
	struct err *err)
{
	scoped(listener_tls) struct listener_tls *tls = new0(struct listener_tls);
	BIO *cert_in = BIO_new_mem_buf(cert, -1), *key_in = BIO_new_mem_buf(key, -1);
	int r = 0;

	tls->context = new_context();
	if (!tls->context || !cert_in || !key_in)
		r = refuse(err, "TLS");
	if (r == 0)
		r = use_cert(tls->context, cert_in, may_be_over, err);
	if (r == 0)
		r = use_key(tls->context, key_in, err);
	BIO_free(cert_in);
	BIO_free(key_in);
	if (r == 0)
		*ret = take(&tls);
	return r;
}

void listener_tls_free(struct listener_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	free(tls);
}

void listener_tls_renew(struct listener_tls *tls, struct listener_tls *from)
{
	SSL_CTX *old = tls->context;

	tls->context = from->context;
	from->context = old;
}
