/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that the gateway needs for it at run time: openat, newfstatat, read, close, lseek (OpenSSL's folder look-up). */
#include "gateway/tls_client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "gateway/tls_end_internal.h"
#include "gateway/tls_sessions.h"
#include "util/mem.h"

#define HASH_DIGITS 8
#define EXTRA_MAX   (16 << 20) /* bytes of PEM */

/* Where distributions keep all roots in one file. */
static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

struct tls_client {
	SSL_CTX *ctx;
	struct tls_sessions *sessions;
};

/* "1a2b3c4d.0", as `openssl rehash` names its links. */
static bool is_hash_name(const char *name)
{
	for (size_t i = 0; i < HASH_DIGITS; i++)
		if (!isxdigit((unsigned char)name[i]))
			return false;
	return name[HASH_DIGITS] == '.' && isdigit((unsigned char)name[HASH_DIGITS + 1]);
}

static bool has_hashes(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool has = false;

	while (!has && dir && (entry = readdir(dir)))
		has = is_hash_name(entry->d_name);
	if (dir)
		(void)closedir(dir);
	return has;
}

static int add_roots(X509_STORE *store, const char *dir, struct err *err)
{
	const char *path = dir ? dir : X509_get_default_cert_dir();
	X509_LOOKUP *lookup;

	if (has_hashes(path)) {
		lookup = X509_STORE_add_lookup(store, X509_LOOKUP_hash_dir());
		if (!lookup || !X509_LOOKUP_add_dir(lookup, path, X509_FILETYPE_PEM))
			return err_set(err, -ENOMEM, "look for roots in '%s'", path);
		return 0;
	}
	/* None at all is no error here: every certificate is refused then, and says why. */
	for (size_t i = 0; !dir && i < sizeof(bundles) / sizeof(bundles[0]); i++)
		if (X509_STORE_load_file(store, bundles[i]) == 1)
			break;
	ERR_clear_error();
	return 0;
}

/* Each of them is trusted as it stands, also one that another has signed. */
static int add_extra(X509_STORE *store, const char *pem, struct err *err)
{
	size_t len = strlen(pem), n = 0;
	BIO *bio = len <= EXTRA_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
	X509 *x;

	while (bio && (x = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL))) {
		n += X509_STORE_add_cert(store, x) == 1;
		X509_free(x);
	}
	BIO_free(bio);
	ERR_clear_error();
	if (n == 0)
		return err_set(err, -EINVAL, "the upstream CA holds no certificate in PEM");
	X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	return 0;
}

/* A certificate that is asked for of us belongs to the handshake in which that can be told. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls_client *client = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct tls_end *end = SSL_get_app_data(ssl);

	if (end->was_asked || SSL_get_verify_result(ssl) != X509_V_OK)
		return 0;
	tls_sessions_add(client->sessions, str_slice(&end->session_key), session);
	return 1;
}

static void keep_sessions(struct tls_client *client)
{
	client->sessions = tls_sessions_new();
	SSL_CTX_set_app_data(client->ctx, client);
	SSL_CTX_clear_options(client->ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(
		client->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(client->ctx, on_session);
}

int tls_client_new(
	const char *roots_dir, const char *extra, struct tls_client **ret_client, struct err *err)
{
	scoped(tls_client) struct tls_client *client = new0(struct tls_client);
	int r;

	client->ctx = tls_end_context(TLS_client_method());
	if (!client->ctx)
		return err_set(err, -ENOMEM, "start TLS: %s", tls_end_last_words());
	SSL_CTX_set_verify(client->ctx, SSL_VERIFY_PEER, NULL);
	keep_sessions(client);
	r = add_roots(SSL_CTX_get_cert_store(client->ctx), roots_dir, err);
	if (r == 0 && extra)
		r = add_extra(SSL_CTX_get_cert_store(client->ctx), extra, err);
	if (r < 0)
		return r;
	*ret_client = take(&client);
	return 0;
}

void tls_client_free(struct tls_client *client)
{
	if (!client)
		return;
	SSL_CTX_free(client->ctx);
	tls_sessions_free(client->sessions);
	free(client);
}

/* Whom the certificate must name, and the name that the server may choose it by. */
static bool set_target(SSL *ssl, const struct tls_target *target)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	const uint8_t *a = target->address;

	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (target->host)
		return X509_VERIFY_PARAM_set1_host(param, target->host, 0) == 1 &&
		       SSL_set_tlsext_host_name(ssl, target->host) == 1;
	if (!a)
		return false;
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a))
		return X509_VERIFY_PARAM_set1_ip(param, a + 12, 4) == 1;
	return X509_VERIFY_PARAM_set1_ip(param, a, 16) == 1;
}

static void make_session_key(const struct tls_target *target, struct str *out)
{
	if (target->host)
		str_puts(out, target->host);
	str_putc(out, '\0');
	if (target->address)
		str_add(out, target->address, sizeof(struct in6_addr));
	str_add(out, &target->port, sizeof(target->port));
	str_add(out, target->alpn.p, target->alpn.len);
}

static void take_up_session(struct tls_client *client, struct tls_end *end)
{
	SSL_SESSION *session = tls_sessions_take(client->sessions, str_slice(&end->session_key));

	if (session)
		(void)SSL_set_session(end->ssl, session); /* else a whole handshake */
	SSL_SESSION_free(session);
}

struct tls_end *tls_client_connect(struct tls_client *client, const struct tls_target *target)
{
	scoped(tls_end) struct tls_end *end = tls_end_new(client->ctx, false, NULL);

	if (!end || !set_target(end->ssl, target))
		return NULL;
	if (target->alpn.len > 0 &&
		SSL_set_alpn_protos(end->ssl, (const unsigned char *)target->alpn.p,
			(unsigned)target->alpn.len) != 0)
		return NULL;
	make_session_key(target, &end->session_key);
	take_up_session(client, end);
	tls_end_start(end);
	return take(&end);
}
