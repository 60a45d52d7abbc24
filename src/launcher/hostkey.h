/* SPDX-License-Identifier: Apache-2.0 */
/* The host's Ed25519 key (RFC 8032), which signs the heads of records: <state>/host.key (PKCS#8 in PEM, 0600)
 * and <state>/host.pub (0644), made at first use. */
#ifndef LAUNCHER_HOSTKEY_H
#define LAUNCHER_HOSTKEY_H

#include <stddef.h>

#include "util/err.h"
#include "util/scoped.h"
#include "util/str.h"

/* Opening reads both files and no more; OpenSSL's signing side wakes up at the first signature (about 1 ms)
 * or with hostkey_warm(), for whoever has to wait for something else anyway. */
struct hostkey;
int hostkey_open(const char *state_dir, struct hostkey **ret_key, struct err *err);
void hostkey_free(struct hostkey *key);
SCOPED_TYPE(hostkey)
/* -EIO where OpenSSL refuses; -EKEYREJECTED where host.pub is not host.key's: nothing is signed then. */
int hostkey_warm(struct hostkey *key);

const char *hostkey_public_b64(const struct hostkey *key); /* the 32 bytes of RFC 8032 */
const char *hostkey_fingerprint(
	const struct hostkey *key); /* "3f:a2:...": SHA-256 of those, first 16 bytes */
int hostkey_sign(struct hostkey *key, const void *text, size_t len, struct str *ret_b64);

/* 0: signature_b64 is key_b64's over text; -EBADMSG: it is not. */
int hostkey_check(const char *key_b64, const char *text, size_t len, const char *signature_b64);
/* The public key of a state directory, without making one: -ENOENT where there is none yet. */
int hostkey_read_public(const char *state_dir, struct str *ret_b64, struct err *err);
/* A key given by the user: a file that holds the PEM of host.pub, or the base64 of the key alone. */
int hostkey_read_public_file(const char *path, struct str *ret_b64, struct err *err);

#endif
