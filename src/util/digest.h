/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) as one running value, and its lowercase hexadecimal form.
 *
 * Uses OpenSSL's direct SHA256 calls: the EVP layer costs each program 1.1 ms to wake up, an eighth of a
 * whole `cloche run`, for the same code underneath. */
#ifndef UTIL_DIGEST_H
#define UTIL_DIGEST_H

#include <stddef.h>

#define DIGEST_LEN      32
#define DIGEST_HEX_LEN  64
#define DIGEST_HEX_SIZE (DIGEST_HEX_LEN + 1)

struct digest {
	unsigned long long state[16]; /* room for SHA256_CTX, asserted in digest.c */
};

void digest_init(struct digest *d);
void digest_add(struct digest *d, const void *p, size_t len);
/* The value so far; the digest can go on growing. */
void digest_value(const struct digest *d, unsigned char ret[DIGEST_LEN]);
void digest_value_hex(const struct digest *d, char ret[DIGEST_HEX_SIZE]);

void digest_hex(const unsigned char value[DIGEST_LEN], char ret[DIGEST_HEX_SIZE]);
int digest_from_hex(const char *hex, unsigned char ret[DIGEST_LEN]); /* -EINVAL where it is none */
void digest_of(const void *p, size_t len, char ret[DIGEST_HEX_SIZE]);

#endif
