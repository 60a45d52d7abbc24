/* SPDX-License-Identifier: Apache-2.0 */
/* Signs heads for a supervisor, which never sees the key, over a socket (SOCK_SEQPACKET). */
#ifndef LAUNCHER_SEAL_H
#define LAUNCHER_SEAL_H

#include "launcher/hostkey.h"
#include "util/err.h"

/* One request, one answer. The request is the canonical head text (record_head_text()) of this sandbox; the
 * answer a JSON object {signature, key, fingerprint}, or {error} for a text that is none or names another
 * sandbox. The head is in the ledger before the answer goes out, as "head", or "end" where it is the last.
 * 0: answered, also with {error}; -EPIPE: end of file; other negative errno: the socket, key or ledger. */
int seal_serve_one(
	int sock, struct hostkey *key, const char *state_dir, const char *sandbox, struct err *err);

#endif
