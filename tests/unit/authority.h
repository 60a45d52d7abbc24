/* SPDX-License-Identifier: Apache-2.0 */
/* An authority as a sandbox has one, for tests of what uses it. */
#ifndef TESTS_AUTHORITY_H
#define TESTS_AUTHORITY_H

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "util/digest.h"
#include "util/jsonw.h"
#include "util/str.h"

struct authority {
	EVP_PKEY *key;
	X509 *x;
	char key_hex[65];
	struct str base64, pem;
};

static void authority_add(X509 *x, int nid, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert(extension && X509_add_ext(x, extension, -1) == 1);
	X509_EXTENSION_free(extension);
}

static void authority_make(struct authority *a, const char *name)
{
	unsigned char secret[32], *der = NULL;
	BIGNUM *d = NULL;
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	int len;

	a->key = EVP_EC_gen("P-256");
	a->x = X509_new();
	X509_set_version(a->x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(a->x), 1);
	X509_gmtime_adj(X509_getm_notBefore(a->x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(a->x), 86400);
	X509_set_pubkey(a->x, a->key);
	X509_NAME_add_entry_by_NID(X509_get_subject_name(a->x), NID_commonName, MBSTRING_UTF8,
		(const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(a->x, X509_get_subject_name(a->x));
	authority_add(a->x, NID_basic_constraints, "critical,CA:TRUE");
	authority_add(a->x, NID_key_usage, "critical,keyCertSign");
	authority_add(a->x, NID_subject_key_identifier, "hash");
	assert(X509_sign(a->x, a->key, EVP_sha256()) > 0);

	assert(EVP_PKEY_get_bn_param(a->key, OSSL_PKEY_PARAM_PRIV_KEY, &d) == 1);
	assert(BN_bn2binpad(d, secret, sizeof(secret)) == sizeof(secret));
	BN_free(d);
	digest_hex(secret, a->key_hex);
	len = i2d_X509(a->x, &der);
	jsonw_base64(&a->base64, der, (size_t)len);
	OPENSSL_free(der);
	PEM_write_bio_X509(bio, a->x);
	len = (int)BIO_get_mem_data(bio, &text);
	str_add(&a->pem, text, (size_t)len);
	BIO_free(bio);
}

static void authority_done(struct authority *a)
{
	EVP_PKEY_free(a->key);
	X509_free(a->x);
	str_done(&a->base64);
	str_done(&a->pem);
}

#endif
