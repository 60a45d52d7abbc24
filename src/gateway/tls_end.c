/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL reads from what put() was given, in place, and writes into a queue (tls_context.c). While the queue is
 * as full as it may be, nothing more is read, so a peer that never reads costs OUT_MAX and no more. */
#include "gateway/tls_end_internal.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

#define RECORD_MAX 16384            /* plain bytes of one record: RFC 8446, 5.1 */
#define OUT_MAX    (2 * RECORD_MAX) /* cipher bytes not sent yet above which nothing is taken */
#define SSL_BYTES  16384            /* of OpenSSL's for one end, about */
#define OUT_KEEP   4096             /* memory that an empty queue may keep */
#define N_SPARE    2 /* of each kind of buffer, between one end's use and another's */

/* Ends come and go without a buffer, many times a second where much passes: new memory each time would cost more
 * than the encryption. */
static struct {
	struct str out[N_SPARE];
	char *plain[N_SPARE];
	size_t n_out, n_plain;
} spare;

static char *get_plain(void)
{
	return spare.n_plain > 0 ? spare.plain[--spare.n_plain] : mem_grow(NULL, 1, RECORD_MAX);
}

static void drop_plain(struct tls_end *e)
{
	if (e->plain && spare.n_plain < N_SPARE)
		spare.plain[spare.n_plain++] = e->plain;
	else
		free(e->plain);
	e->plain = NULL;
	e->plain_at = e->plain_len = 0;
}

static void drop_out(struct tls_end *e)
{
	e->out_sent = 0;
	str_reset(&e->out);
	if (e->out.cap <= OUT_KEEP)
		return;
	if (spare.n_out < N_SPARE && e->out.cap <= 2 * OUT_MAX)
		spare.out[spare.n_out++] = e->out;
	else
		str_done(&e->out);
	e->out = (struct str){0};
}

void tls_end_add_cipher(struct tls_end *e, const void *p, size_t len)
{
	if (!e->out.p && spare.n_out > 0 && len > OUT_KEEP / 2)
		e->out = spare.out[--spare.n_out];
	str_add(&e->out, p, len);
}

struct tls_end *tls_end_new(SSL_CTX *ctx, bool is_server, const char *alpn)
{
	scoped(tls_end) struct tls_end *e = new0(struct tls_end);
	BIO *bio = tls_end_bio(e);

	e->alert = -1;
	e->ssl = SSL_new(ctx);
	if (!e->ssl || !bio) {
		BIO_free(bio);
		return NULL;
	}
	SSL_set_bio(e->ssl, bio, bio);
	SSL_set_app_data(e->ssl, e);
	(void)snprintf(e->alpn, sizeof(e->alpn), "%s", alpn ? alpn : "");
	if (is_server)
		SSL_set_accept_state(e->ssl);
	else
		SSL_set_connect_state(e->ssl);
	return take(&e);
}

void tls_end_free(struct tls_end *e)
{
	if (!e)
		return;
	SSL_free(e->ssl); /* with its BIO */
	str_done(&e->out);
	str_done(&e->session_key);
	drop_plain(e);
	free(e);
}

const char *tls_end_last_words(void)
{
	const char *words = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return words ? words : "an error without a name";
}

/* Why it failed. */

static void fail(
	struct tls_end *e, enum tls_end_failure failure, const char *what, const char *words)
{
	if (e->state == TLS_END_FAILED)
		return;
	e->state = TLS_END_FAILED;
	e->failure = failure;
	(void)snprintf(e->reason, sizeof(e->reason), "%s%s", what, words);
}

static void explain(struct tls_end *e)
{
	long verdict = SSL_get_verify_result(e->ssl);

	if (e->alert >= 0)
		fail(e, TLS_END_ALERT, "alert ", SSL_alert_desc_string_long(e->alert));
	else if (e->state == TLS_END_HANDSHAKE && verdict != X509_V_OK)
		fail(e, TLS_END_BAD_CERTIFICATE, "", X509_verify_cert_error_string(verdict));
	else
		fail(e, TLS_END_BROKEN, "", tls_end_last_words());
	ERR_clear_error();
}

/* After a call into OpenSSL that did not do what was wanted. */
static void look_why(struct tls_end *e, int result)
{
	switch (SSL_get_error(e->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return;
	case SSL_ERROR_ZERO_RETURN:
		e->has_close = true;
		return;
	default:
		explain(e);
	}
}

/* Goes on as far as the bytes at hand allow. */

static void note_alpn(struct tls_end *e)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(e->ssl, &name, &len);
	if (len > 0)
		memcpy(e->alpn, name, len);
	e->alpn[len] = '\0';
}

static void shake_hands(struct tls_end *e)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(e->ssl);
	if (r == 1) {
		e->state = TLS_END_OPEN;
		note_alpn(e);
	} else {
		look_why(e, r);
		if (e->has_close)
			fail(e, TLS_END_CUT_OFF, "", "closed during the handshake");
	}
}

static void read_plain(struct tls_end *e)
{
	if (e->in.len == 0 && SSL_pending(e->ssl) == 0)
		return;
	if (!e->plain)
		e->plain = get_plain();
	while (e->state == TLS_END_OPEN && e->plain_len < RECORD_MAX) {
		int n;

		ERR_clear_error();
		n = SSL_read(e->ssl, e->plain + e->plain_len, (int)(RECORD_MAX - e->plain_len));
		if (n <= 0) {
			look_why(e, n);
			break;
		}
		e->plain_len += (size_t)n;
	}
	if (e->plain_len == 0)
		drop_plain(e);
}

static size_t waiting(const struct tls_end *e)
{
	return e->out.len - e->out_sent;
}

static void run(struct tls_end *e)
{
	if (waiting(e) >= OUT_MAX)
		return;
	if (e->state == TLS_END_HANDSHAKE)
		shake_hands(e);
	if (e->state == TLS_END_OPEN && !e->has_close && e->plain_len == 0)
		read_plain(e);
}

void tls_end_start(struct tls_end *e)
{
	run(e);
}

size_t tls_end_put(struct tls_end *e, const void *p, size_t len)
{
	size_t left;

	if (e->state == TLS_END_FAILED || e->has_close)
		return len;
	e->in = (struct slice){.p = p, .len = len};
	run(e);
	left = e->state == TLS_END_FAILED || e->has_close ? 0 : e->in.len;
	e->in = (struct slice){0};
	return len - left;
}

void tls_end_put_end(struct tls_end *e)
{
	e->in_end = true;
	if (e->state == TLS_END_HANDSHAKE)
		fail(e, TLS_END_CUT_OFF, "", "closed during the handshake");
}

struct slice tls_end_cipher(struct tls_end *e)
{
	return (struct slice){.p = e->out.p + e->out_sent, .len = waiting(e)};
}

void tls_end_sent(struct tls_end *e, size_t n)
{
	e->out_sent += n;
	if (waiting(e) > 0)
		return;
	drop_out(e);
	if (SSL_pending(e->ssl) > 0)
		run(e);
}

struct slice tls_end_plain(struct tls_end *e)
{
	return (struct slice){.p = e->plain + e->plain_at, .len = e->plain_len - e->plain_at};
}

void tls_end_took(struct tls_end *e, size_t n)
{
	e->plain_at += n;
	if (e->plain_at < e->plain_len || !e->plain)
		return;
	drop_plain(e);
	run(e); /* the rest of a record that did not fit */
}

size_t tls_end_write(struct tls_end *e, const void *p, size_t len)
{
	size_t done = 0;

	while (e->state == TLS_END_OPEN && !e->has_sent_close && done < len &&
		waiting(e) < OUT_MAX) {
		size_t part = len - done < RECORD_MAX ? len - done : RECORD_MAX;
		int n;

		ERR_clear_error();
		n = SSL_write(e->ssl, (const char *)p + done, (int)part);
		if (n <= 0) {
			look_why(e, n);
			break;
		}
		done += (size_t)n;
	}
	return done;
}

void tls_end_close(struct tls_end *e)
{
	if (e->state != TLS_END_OPEN || e->has_sent_close)
		return;
	e->has_sent_close = true;
	ERR_clear_error();
	if (SSL_shutdown(e->ssl) < 0)
		ERR_clear_error(); /* a peer that has failed has nothing to hear */
}

enum tls_end_state tls_end_state(const struct tls_end *e)
{
	return e->state;
}

enum tls_end_failure tls_end_failure(const struct tls_end *e)
{
	return e->failure;
}

const char *tls_end_reason(const struct tls_end *e)
{
	return e->reason;
}

unsigned char tls_end_fitting_alert(const struct tls_end *e)
{
	if (e->failure != TLS_END_BAD_CERTIFICATE)
		return TLS1_AD_INTERNAL_ERROR;
	switch (SSL_get_verify_result(e->ssl)) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return SSL_AD_CERTIFICATE_EXPIRED;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
		return SSL_AD_UNKNOWN_CA;
	default:
		return SSL_AD_BAD_CERTIFICATE;
	}
}

bool tls_end_is_at_end(const struct tls_end *e)
{
	if (e->plain_at < e->plain_len)
		return false;
	return e->has_close || e->state == TLS_END_FAILED ||
	       (e->in_end && SSL_pending(e->ssl) == 0);
}

bool tls_end_is_cut_off(const struct tls_end *e)
{
	return tls_end_is_at_end(e) && !e->has_close;
}

const char *tls_end_alpn(const struct tls_end *e)
{
	return e->state == TLS_END_HANDSHAKE ? "" : e->alpn;
}

size_t tls_end_holds(const struct tls_end *e)
{
	return sizeof(*e) + SSL_BYTES + e->out.cap + (e->plain ? RECORD_MAX : 0);
}

bool tls_end_was_asked(const struct tls_end *e)
{
	return e->was_asked;
}
