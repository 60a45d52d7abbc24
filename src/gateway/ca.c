/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/ca.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>
#include <time.h>

#include "gateway/leaf.h"
#include "gateway/tls_end_internal.h"
#include "util/base64.h"
#include "util/digest.h"
#include "util/map.h"
#include "util/mem.h"

#define MAX_LEAVES  256          /* about 2 KiB each */
#define LEAF_USE_S  (7L * 86400) /* after which a new one is made: long before the old one ends */
#define KEY_LEN     32
#define POINT_LEN   65 /* uncompressed */
#define CURVE       "P-256"
#define ADDRESS_LEN 16

struct leaf {
	struct str key; /* the name it is for, see make_key() */
	X509 *x;
	time_t made_s;
	struct leaf *newer, *older; /* by use */
};

struct ca {
	SSL_CTX *ctx;
	EVP_PKEY *key, *leaf_key;
	X509 *certificate;
	struct map *leaves; /* key -> struct leaf */
	struct leaf *newest, *oldest;
};

/* The key that belongs to this certificate. */
static EVP_PKEY *read_key(const unsigned char secret[KEY_LEN], X509 *certificate)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL), *check = NULL;
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	BIGNUM *d = BN_secure_new();
	EVP_PKEY *public = X509_get0_pubkey(certificate), *key = NULL;
	unsigned char point[POINT_LEN];
	OSSL_PARAM *params = NULL;
	size_t len = 0;

	if (ctx && build && d && public &&
		EVP_PKEY_get_octet_string_param(
			public, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &len) == 1 &&
		BN_bin2bn(secret, KEY_LEN, d) &&
		OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, CURVE, 0) &&
		OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, len) &&
		OSSL_PARAM_BLD_push_BN_pad(build, OSSL_PKEY_PARAM_PRIV_KEY, d, KEY_LEN))
		params = OSSL_PARAM_BLD_to_param(build);
	if (params && EVP_PKEY_fromdata_init(ctx) == 1)
		(void)EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params);
	check = key ? EVP_PKEY_CTX_new(key, NULL) : NULL;
	if (!check || EVP_PKEY_pairwise_check(check) != 1) {
		EVP_PKEY_free(key);
		key = NULL;
	}
	EVP_PKEY_CTX_free(check);
	OSSL_PARAM_free(params); /* what was secret in it is overwritten */
	OSSL_PARAM_BLD_free(build);
	BN_clear_free(d);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

static X509 *read_certificate(struct slice base64)
{
	scoped_str struct str der = {0};
	const unsigned char *p;

	if (base64_decode(base64, &der) < 0 || der.len == 0)
		return NULL;
	p = (const unsigned char *)der.p;
	return d2i_X509(NULL, &p, (long)der.len);
}

static int read_authority(struct ca *ca, struct slice key_hex, struct slice certificate)
{
	char hex[2 * KEY_LEN + 1] = {0};
	unsigned char secret[KEY_LEN];

	_Static_assert(KEY_LEN == DIGEST_LEN, "digest_from_hex() reads a key");
	if (key_hex.len != sizeof(hex) - 1)
		return -EBADMSG;
	memcpy(hex, key_hex.p, key_hex.len);
	ca->certificate = read_certificate(certificate);
	if (ca->certificate && digest_from_hex(hex, secret) == 0)
		ca->key = read_key(secret, ca->certificate);
	OPENSSL_cleanse(secret, sizeof(secret));
	OPENSSL_cleanse(hex, sizeof(hex));
	return ca->key ? 0 : -EBADMSG;
}

/* Programs that open one connection after another take up the session of the one before. Nothing is kept here: the ticket holds
 * all, under a key of this context. */
static void give_tickets(SSL_CTX *ctx)
{
	SSL_CTX_clear_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(ctx, 1);
}

int ca_new(
	struct slice key_hex, struct slice certificate_base64, struct ca **ret_ca, struct err *err)
{
	scoped(ca) struct ca *ca = new0(struct ca);
	int r;

	ca->leaves = map_new();
	ca->ctx = tls_end_context(TLS_server_method());
	ca->leaf_key = EVP_EC_gen(CURVE);
	if (ca->ctx)
		give_tickets(ca->ctx);
	if (!ca->ctx || !ca->leaf_key)
		return err_set(err, -ENOMEM, "start TLS: %s", tls_end_last_words());
	r = read_authority(ca, key_hex, certificate_base64);
	if (r < 0) {
		(void)tls_end_last_words();
		return err_set(err, r, "the sandbox's authority is no key and its certificate");
	}
	*ret_ca = take(&ca);
	return 0;
}

static void unlink_leaf(struct ca *ca, struct leaf *leaf)
{
	*(leaf->newer ? &leaf->newer->older : &ca->newest) = leaf->older;
	*(leaf->older ? &leaf->older->newer : &ca->oldest) = leaf->newer;
	leaf->newer = leaf->older = NULL;
}

static void link_first(struct ca *ca, struct leaf *leaf)
{
	leaf->older = ca->newest;
	*(ca->newest ? &ca->newest->newer : &ca->oldest) = leaf;
	ca->newest = leaf;
}

static void drop(struct ca *ca, struct leaf *leaf)
{
	unlink_leaf(ca, leaf);
	(void)map_remove(ca->leaves, str_slice(&leaf->key));
	str_done(&leaf->key);
	X509_free(leaf->x);
	free(leaf);
}

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	while (ca->oldest)
		drop(ca, ca->oldest);
	map_free(ca->leaves);
	SSL_CTX_free(ca->ctx);
	X509_free(ca->certificate);
	EVP_PKEY_free(ca->leaf_key);
	EVP_PKEY_free(ca->key);
	free(ca);
}

static void make_key(const struct ca_name *name, struct str *out)
{
	if (name->host)
		str_puts(out, name->host);
	str_putc(out, '\0');
	if (name->address)
		str_add(out, name->address, ADDRESS_LEN);
}

static X509 *make(struct ca *ca, const struct ca_name *name, struct str *key, time_t now)
{
	X509 *x = leaf_new(name, ca->leaf_key, ca->certificate, ca->key);
	struct leaf *leaf;

	if (!x) {
		(void)tls_end_last_words();
		return NULL;
	}
	if (map_len(ca->leaves) >= MAX_LEAVES)
		drop(ca, ca->oldest);
	leaf = new0(struct leaf);
	leaf->key = *key;
	*key = (struct str){0};
	leaf->x = x;
	leaf->made_s = now;
	*map_slot(ca->leaves, str_slice(&leaf->key)) = leaf;
	link_first(ca, leaf);
	return x;
}

static X509 *find_or_make(struct ca *ca, const struct ca_name *name)
{
	scoped_str struct str key = {0};
	time_t now = time(NULL);
	struct leaf *leaf;

	make_key(name, &key);
	leaf = map_find(ca->leaves, str_slice(&key));
	if (leaf && (now < leaf->made_s || now - leaf->made_s > LEAF_USE_S)) {
		drop(ca, leaf);
		leaf = NULL;
	}
	if (!leaf)
		return make(ca, name, &key, now);
	unlink_leaf(ca, leaf);
	link_first(ca, leaf);
	return leaf->x;
}

struct tls_end *ca_accept(struct ca *ca, const struct ca_name *name, const char *alpn)
{
	X509 *x = find_or_make(ca, name);
	scoped(tls_end) struct tls_end *end = x ? tls_end_new(ca->ctx, true, alpn) : NULL;

	if (!end || SSL_use_certificate(end->ssl, x) != 1 ||
		SSL_use_PrivateKey(end->ssl, ca->leaf_key) != 1) {
		(void)tls_end_last_words();
		return NULL;
	}
	return take(&end);
}
