/* SPDX-License-Identifier: Apache-2.0 */
/* Root's small part: starts supervisors, signs their heads with the host key they never see, keeps the
 * ledger. Without a launcher service the CLI calls these functions in its own process. */
#ifndef LAUNCHER_LAUNCHER_H
#define LAUNCHER_LAUNCHER_H

#include <sys/types.h>

#include "util/err.h"
#include "util/str.h"

/* Ed25519 (RFC 8032), <state>/host.key (PEM, 0600) and host.pub (0644), made at first use. */
struct hostkey;
int hostkey_open(const char *state_dir, struct hostkey **ret_key, struct err *err);
void hostkey_free(struct hostkey *key);
SCOPED_TYPE(hostkey)
const char *hostkey_public_b64(const struct hostkey *key);
const char *hostkey_fingerprint(const struct hostkey *key); /* "3f:a2:..." of the public key's SHA-256 */
int hostkey_sign(struct hostkey *key, const void *text, size_t len, struct str *ret_b64);
int hostkey_check(const char *key_b64, const char *text, size_t len, const char *signature_b64);
int hostkey_read_public(const char *state_dir, struct str *ret_b64, struct err *err);

/* The ledger: <state>/ledger.jsonl, one chained line an act: open, head, end, removed, applied, discarded.
 * Appending takes a lock, reads the last line for the chain, writes one line, syncs for `end`. */
struct ledger_line {
	const char *act;      /* "open", "head", "end", "remove", "apply", "discard" */
	const char *sandbox;
	const char *head;     /* hex, or NULL */
	const char *actor;    /* "uid:1000" */
	const char *detail;   /* program, exit status, or what was done; NULL */
	uint64_t seq;
	uid_t owner;
};
int ledger_append(const char *state_dir, const struct ledger_line *line, struct err *err);
/* Calls back for each line, oldest first; stops where the callback returns non-zero and returns that.
 * -EBADMSG where the chain is broken, with the line's number in the sentence. */
int ledger_walk(const char *state_dir, int (*on_line)(void *ctx, const struct ledger_line *line), void *ctx,
	struct err *err);

/* Serves a supervisor's seal requests on a socket (SOCK_SEQPACKET): the request is the canonical head text
 * (record_head_text), the answer one JSON object {signature, key, fingerprint}. Each is entered in the
 * ledger. One request, one answer: 0; end of file: -EPIPE. */
int seal_serve_one(int sock, struct hostkey *key, const char *state_dir, const char *sandbox, struct err *err);

#endif
