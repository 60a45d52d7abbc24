/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate (RFC 5280) is put together here: OpenSSL's encoders take 1.5 ms to wake up, its generator of
 * random numbers another one; the key and the signature that are really wanted take 0.1. */
#define OPENSSL_API_COMPAT 0x10100000L /* RAND_METHOD and the direct SHA-1 */
#include "launcher/authority.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "util/der.h"
#include "util/digest.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/scoped.h"

#define DAY           86400L
#define VALID_DAYS    3650 /* the key does not live as long: it goes with the sandbox */
#define KEY_LEN       32
#define POINT_LEN     65 /* uncompressed */
#define SERIAL_LEN    16
#define SIGNATURE_MAX 80
#define HIDDEN_LEN    2048

#define BYTES(text)   ((struct slice){.p = (text), .len = sizeof(text) - 1})

/* Whole elements, tags and lengths included. */
static const struct slice
	version_3 = BYTES("\x02\x01\x02"),
	ecdsa_with_sha256 = BYTES("\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"),
	p256_key = BYTES(
		"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01"
		"\x07"),
	organization = BYTES("\x06\x03\x55\x04\x0a"), common_name = BYTES("\x06\x03\x55\x04\x03"),
	/* Critical: an authority for hosts, with none below it; keyCertSign and cRLSign. */
	basic_constraints =
		BYTES("\x30\x12\x06\x03\x55\x1d\x13\x01\x01\xff\x04\x08\x30\x06\x01\x01\xff\x02\x01"
		      "\x00"),
	key_usage = BYTES("\x30\x0e\x06\x03\x55\x1d\x0f\x01\x01\xff\x04\x04\x03\x02\x01\x06"),
	/* The key's identifier follows. */
	key_identifier = BYTES("\x30\x1d\x06\x03\x55\x1d\x0e\x04\x16\x04\x14");

static int random_bytes(unsigned char *p, int len)
{
	return getrandom(p, (size_t)len, 0) == len;
}

static int random_status(void)
{
	return 1;
}

/* OpenSSL's own generator would be seeded from the same source. */
static void wake_openssl(void)
{
	static const RAND_METHOD kernels = {
		.bytes = random_bytes, .pseudorand = random_bytes, .status = random_status};

	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	RAND_set_rand_method(&kernels);
}

static void add(struct str *out, struct slice element)
{
	str_add(out, element.p, element.len);
}

static void put_bits(struct str *out, struct slice bits)
{
	scoped_str struct str content = {0};

	str_putc(&content, 0); /* none unused in the last byte */
	add(&content, bits);
	der_wrap(out, DER_BITS, &content);
}

static void put_name_part(struct str *out, struct slice type, const char *value)
{
	scoped_str struct str pair = {0}, content = {0};

	add(&pair, type);
	der_put(&pair, DER_UTF8, slice_of(value));
	der_wrap(&content, DER_SEQUENCE, &pair);
	der_wrap(out, DER_SET, &content);
}

static void put_name_parts(struct str *out, const char *owner, const char *name)
{
	put_name_part(out, organization, owner);
	put_name_part(out, common_name, name);
}

/* X509_NAME_hash(): SHA-1 over the parts in small letters, its first four bytes, the last one first. */
static void put_link_name(struct str *out, const char *name)
{
	scoped_mem char *small = mem_dup(name);
	scoped_str struct str parts = {0};
	unsigned char hash[SHA_DIGEST_LENGTH];

	for (char *p = small; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	put_name_parts(&parts, "cloche", small);
	SHA1((unsigned char *)parts.p, parts.len, hash);
	str_printf(out, "%02x%02x%02x%02x", hash[3], hash[2], hash[1], hash[0]);
}

static void put_time(struct str *out, time_t when)
{
	struct tm utc;
	char text[32];
	bool is_long;

	(void)gmtime_r(&when, &utc);
	is_long = utc.tm_year >= 150; /* 2050: RFC 5280, 4.1.2.5 */
	(void)strftime(text, sizeof(text), "%Y%m%d%H%M%SZ", &utc);
	der_put(out, is_long ? DER_LONG_TIME : DER_UTC_TIME, slice_of(is_long ? text : text + 2));
}

static void put_validity(struct str *out)
{
	scoped_str struct str times = {0};
	time_t now = time(NULL);

	put_time(&times, now - DAY);
	put_time(&times, now + VALID_DAYS * DAY);
	der_wrap(out, DER_SEQUENCE, &times);
}

static void put_key(struct str *out, struct slice point)
{
	scoped_str struct str content = {0};

	add(&content, p256_key);
	put_bits(&content, point);
	der_wrap(out, DER_SEQUENCE, &content);
}

static void put_extensions(struct str *out, struct slice point)
{
	scoped_str struct str list = {0}, content = {0};
	unsigned char id[SHA_DIGEST_LENGTH];

	SHA1((const unsigned char *)point.p, point.len, id); /* RFC 5280, 4.2.1.2 */
	add(&list, basic_constraints);
	add(&list, key_usage);
	add(&list, key_identifier);
	str_add(&list, id, sizeof(id));
	der_wrap(&content, DER_SEQUENCE, &list);
	der_wrap(out, DER_CHOICE_3, &content);
}

/* All but the signature. */
static void put_body(struct str *out, const char *name, struct slice point)
{
	scoped_str struct str body = {0}, parts = {0};
	char serial[SERIAL_LEN] = {0};

	if (random_bytes((unsigned char *)serial, sizeof(serial)) != 1)
		abort();                               /* the kernel has always some */
	serial[0] = (char)((serial[0] & 0x7f) | 0x40); /* positive and never short */
	der_put(&body, DER_CHOICE_0, version_3);
	der_put(&body, DER_INTEGER, (struct slice){.p = serial, .len = sizeof(serial)});
	add(&body, ecdsa_with_sha256);
	put_name_parts(&parts, "Cloche", name);
	der_put(&body, DER_SEQUENCE, str_slice(&parts)); /* issuer */
	put_validity(&body);
	der_wrap(&body, DER_SEQUENCE, &parts); /* subject */
	put_key(&body, point);
	put_extensions(&body, point);
	der_wrap(out, DER_SEQUENCE, &body);
}

static int sign(EVP_PKEY *key, struct slice text, struct str *out)
{
	unsigned char signature[SIGNATURE_MAX];
	size_t len = sizeof(signature);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok =
		ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
		EVP_DigestSign(ctx, signature, &len, (const unsigned char *)text.p, text.len) == 1;

	EVP_MD_CTX_free(ctx);
	if (!ok)
		return -EIO;
	put_bits(out, (struct slice){.p = (char *)signature, .len = len});
	return 0;
}

static int put_certificate(struct str *out, const char *name, EVP_PKEY *key)
{
	scoped_str struct str content = {0}, bits = {0};
	unsigned char point[POINT_LEN];
	size_t len = 0;
	int r;

	if (EVP_PKEY_get_octet_string_param(
		    key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &len) != 1 ||
		len != sizeof(point))
		return -EIO;
	put_body(&content, name, (struct slice){.p = (char *)point, .len = len});
	r = sign(key, str_slice(&content), &bits);
	add(&content, ecdsa_with_sha256);
	add(&content, str_slice(&bits));
	der_wrap(out, DER_SEQUENCE, &content);
	return r;
}

static int put_hidden(struct str *out, EVP_PKEY *key, const struct str *certificate)
{
	unsigned char secret[KEY_LEN];
	char hex[2 * KEY_LEN + 1];
	BIGNUM *d = NULL;
	int r = -EIO;

	_Static_assert(KEY_LEN == DIGEST_LEN, "digest_hex() writes a key");
	str_reserve(out, HIDDEN_LEN); /* one that grows leaves copies behind */
	if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &d) == 1 &&
		BN_bn2binpad(d, secret, KEY_LEN) == KEY_LEN) {
		digest_hex(secret, hex);
		str_printf(out, "{\"ca\":{\"key\":\"%s\",\"certificate\":\"", hex);
		jsonw_base64(out, certificate->p, certificate->len);
		str_puts(out, "\"}}\n");
		r = 0;
	}
	OPENSSL_cleanse(secret, sizeof(secret));
	OPENSSL_cleanse(hex, sizeof(hex));
	BN_clear_free(d);
	return r;
}

int authority_make(const char *sandbox, struct str *hidden, struct str *trust, struct err *err)
{
	scoped_mem char *name = mem_printf("Cloche sandbox %s", sandbox);
	scoped_str struct str certificate = {0};
	EVP_PKEY *key;
	int r = -EIO;

	wake_openssl();
	key = EVP_EC_gen("P-256");
	if (key)
		r = put_certificate(&certificate, name, key);
	if (r == 0)
		r = put_hidden(hidden, key, &certificate);
	if (r == 0) {
		put_link_name(trust, name);
		add(trust, str_slice(&certificate));
	}
	EVP_PKEY_free(key);
	return r < 0 ? err_set(err, r, "make the sandbox's authority: OpenSSL refuses") : 0;
}
