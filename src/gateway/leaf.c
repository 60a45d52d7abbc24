/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/leaf.h"

#include <arpa/inet.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#define DAY          86400L
#define VALID_DAYS   27
#define SERIAL_BYTES 16
#define NAME_MAX_CN  64 /* ub-common-name: longer names are in the alternative name alone */

static bool add_alternative(GENERAL_NAMES *names, int type, const void *p, size_t len)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_STRING *text = type == GEN_DNS ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new();

	if (!name || !text || !ASN1_STRING_set(text, p, (int)len)) {
		GENERAL_NAME_free(name);
		ASN1_STRING_free(text);
		return false;
	}
	GENERAL_NAME_set0_value(name, type, text);
	if (sk_GENERAL_NAME_push(names, name) > 0)
		return true;
	GENERAL_NAME_free(name);
	return false;
}

static bool add_address(GENERAL_NAMES *names, const uint8_t *a)
{
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)a))
		return add_alternative(names, GEN_IPADD, a + 12, 4);
	return add_alternative(names, GEN_IPADD, a, 16);
}

/* Critical where there is no subject: RFC 5280, 4.2.1.6. */
static bool set_names(X509 *x, const struct ca_name *name)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	size_t len = name->host ? strlen(name->host) : 0;
	bool has_cn = len > 0 && len <= NAME_MAX_CN, ok = names != NULL;

	if (ok && len > 0)
		ok = add_alternative(names, GEN_DNS, name->host, len);
	if (ok && name->address)
		ok = add_address(names, name->address);
	if (ok && has_cn)
		ok = X509_NAME_add_entry_by_NID(X509_get_subject_name(x), NID_commonName,
			     MBSTRING_UTF8, (const unsigned char *)name->host, (int)len, -1,
			     0) == 1;
	ok = ok && X509_add1_ext_i2d(x, NID_subject_alt_name, names, !has_cn, 0) == 1;
	GENERAL_NAMES_free(names);
	return ok;
}

static bool set_usage(X509 *x)
{
	BASIC_CONSTRAINTS *basic = BASIC_CONSTRAINTS_new();
	EXTENDED_KEY_USAGE *purposes = EXTENDED_KEY_USAGE_new();
	ASN1_BIT_STRING *usage = ASN1_BIT_STRING_new();
	bool ok = basic && purposes && usage &&
	          sk_ASN1_OBJECT_push(purposes, OBJ_nid2obj(NID_server_auth)) > 0 &&
	          ASN1_BIT_STRING_set_bit(usage, 0, 1) && /* digitalSignature */
	          X509_add1_ext_i2d(x, NID_basic_constraints, basic, 1, 0) == 1 &&
	          X509_add1_ext_i2d(x, NID_key_usage, usage, 1, 0) == 1 &&
	          X509_add1_ext_i2d(x, NID_ext_key_usage, purposes, 0, 0) == 1;

	BASIC_CONSTRAINTS_free(basic);
	EXTENDED_KEY_USAGE_free(purposes);
	ASN1_BIT_STRING_free(usage);
	return ok;
}

static bool set_issuer(X509 *x, const X509 *issuer)
{
	const ASN1_OCTET_STRING *id = X509_get0_subject_key_id((X509 *)issuer);
	AUTHORITY_KEYID *authority = AUTHORITY_KEYID_new();
	bool ok = id && authority && X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1;

	if (ok) {
		authority->keyid = ASN1_OCTET_STRING_dup(id);
		ok = X509_add1_ext_i2d(x, NID_authority_key_identifier, authority, 0, 0) == 1;
	}
	AUTHORITY_KEYID_free(authority);
	return ok;
}

static bool set_serial(X509 *x)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *n;
	bool ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive and never short */
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
	BN_free(n);
	return ok;
}

X509 *leaf_new(const struct ca_name *name, EVP_PKEY *key, const X509 *issuer, EVP_PKEY *issuer_key)
{
	X509 *x = X509_new();

	if (x && X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
		X509_gmtime_adj(X509_getm_notBefore(x), -DAY) &&
		X509_gmtime_adj(X509_getm_notAfter(x), VALID_DAYS * DAY) &&
		X509_set_pubkey(x, key) == 1 && set_usage(x) && set_issuer(x, issuer) &&
		set_names(x, name) && X509_sign(x, issuer_key, EVP_sha256()) > 0)
		return x;
	X509_free(x);
	return NULL;
}
