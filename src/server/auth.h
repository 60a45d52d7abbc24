/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks: the account and role of a key (Authorization: Bearer clo_...), or of a local user over the Unix socket. */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include "server/call.h"

#define AUTH_KEY_PREFIX "clo_"
#define AUTH_KEY_SIZE   48        /* "clo_", 43 characters of base64url, NUL */
#define AUTH_PREFIX_LEN 8         /* of a key, to know it by */
#define AUTH_OPERATOR   "default" /* the account whose admins look after accounts */

/* Fills call->caller. -EACCES with a sentence where the key is none or was revoked: 401, the same for both.
 * -EPERM: it was sent from a sandbox of another account. Blocks. */
int auth_check(struct call *call, struct err *err);

/* A new key: random text, and the hash under which it is kept. */
void auth_new_key(char ret_key[AUTH_KEY_SIZE], char ret_hash[DIGEST_HEX_SIZE]);

/* Makes the account "default" and, where it never had a key, one for its admins, which is printed before it is kept. Of
 * replicas that start at once, one does. */
int auth_first_start(struct store *store, struct err *err);

#endif
