/* SPDX-License-Identifier: Apache-2.0 */
#define OPENSSL_API_COMPAT 0x10100000L /* the direct calls: see digest.h */
#include "util/digest.h"

#include <errno.h>
#include <openssl/sha.h>
#include <string.h>

_Static_assert(sizeof(struct digest) >= sizeof(SHA256_CTX), "struct digest holds a SHA256_CTX");

static SHA256_CTX *ctx(struct digest *d)
{
	return (SHA256_CTX *)d->state;
}

void digest_init(struct digest *d)
{
	SHA256_Init(ctx(d));
}

void digest_add(struct digest *d, const void *p, size_t len)
{
	SHA256_Update(ctx(d), p, len);
}

void digest_value(const struct digest *d, unsigned char ret[DIGEST_LEN])
{
	struct digest copy = *d;

	SHA256_Final(ret, ctx(&copy));
}

void digest_value_hex(const struct digest *d, char ret[DIGEST_HEX_SIZE])
{
	unsigned char value[DIGEST_LEN];

	digest_value(d, value);
	digest_hex(value, ret);
}

void digest_hex(const unsigned char value[DIGEST_LEN], char ret[DIGEST_HEX_SIZE])
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < DIGEST_LEN; i++) {
		ret[2 * i] = digit[value[i] >> 4];
		ret[2 * i + 1] = digit[value[i] & 15];
	}
	ret[DIGEST_HEX_LEN] = '\0';
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int digest_from_hex(const char *hex, unsigned char ret[DIGEST_LEN])
{
	if (strlen(hex) != DIGEST_HEX_LEN)
		return -EINVAL;
	for (size_t i = 0; i < DIGEST_LEN; i++) {
		int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		ret[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

void digest_of(const void *p, size_t len, char ret[DIGEST_HEX_SIZE])
{
	struct digest d;

	digest_init(&d);
	digest_add(&d, p, len);
	digest_value_hex(&d, ret);
}
