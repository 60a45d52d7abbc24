/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-ins out, values in, and back. Pure.
 *
 * Inside, a program knows a secret only by its stand-in (spec_stand_in.h): as long as the value, of the same kinds
 * of characters. On a request to a host that the secret is bound to, over TLS that was verified (or also without,
 * where it says plain), the value takes the stand-in's place:
 *   - in field values: as it is, percent-encoded, with JSON's escapes, and within Basic credentials;
 *   - in the path and query, and in bodies without Content-Encoding: as it is, percent-encoded, with JSON's escapes;
 *     values under 16 bytes only in field values, where they cannot be mistaken.
 * Percent-encoded means: what a usual encoder leaves (letters and digits) stands as it is. Other forms (every byte
 * percent-encoded, base64 outside Basic, upper case) are not touched.
 * Anywhere else a stand-in is not to go: it is found in these forms, and with every byte percent-encoded, and within
 * base64. In answers the value becomes the stand-in again, in these forms and within base64 of either alphabet.
 * Every form of the one is as long as that of the other, so lengths stay true.
 *
 * A secret may name hosts to which its stand-in may pass in bodies, as it is: such as model APIs, to which an agent
 * sends again whatever it has read.
 *
 * A set of secrets is a mask: bit i is secret i. */
#ifndef GATEWAY_SECRETS_H
#define GATEWAY_SECRETS_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/spec_network.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

#define SECRETS_MAX 64

struct secrets;

/* Copies what it needs; secrets without a value or a stand-in are left out. -E2BIG, -EINVAL with a sentence. */
int secrets_new(
	const struct spec_secret *list, size_t n, struct secrets **ret_secrets, struct err *err);
void secrets_free(struct secrets *secrets); /* overwrites the values */
SCOPED_TYPE(secrets)

uint64_t secrets_all(const struct secrets *secrets);
const char *secrets_name(const struct secrets *secrets, unsigned i);
/* Those whose value may go to this host, which may be NULL. verified: by TLS whose certificate was found good. */
uint64_t secrets_bound(
	const struct secrets *secrets, const char *host, uint16_t port, bool verified);
/* Those that this host may have been told, by whichever port and however: what it says may hold their values. */
uint64_t secrets_known(const struct secrets *secrets, const char *host);

/* Those whose stand-in may stand in bodies for this host, as it is. */
uint64_t secrets_passing(const struct secrets *secrets, const char *host, uint16_t port);
/* The hosts that a secret is bound to, in words: "a.test, *.b.test". */
void secrets_add_hosts(const struct secrets *secrets, unsigned i, struct str *out);

/* Adds a field's value, or a path, with the values of mask put in. Those that were. */
uint64_t secrets_put_field(
	const struct secrets *secrets, uint64_t mask, struct slice value, struct str *out);
uint64_t secrets_put_path(
	const struct secrets *secrets, uint64_t mask, struct slice path, struct str *out);
/* Those of mask whose stand-in is somewhere in the text. */
uint64_t secrets_find(const struct secrets *secrets, uint64_t mask, struct slice text);
/* Puts the stand-ins back, in place. */
void secrets_put_back(const struct secrets *secrets, uint64_t mask, char *p, size_t len);

/* A body as it goes by. What could be the beginning of something to replace is held until that is known. */
struct secrets_stream {
	const struct secrets *secrets;
	uint64_t put, find, back; /* masks: what to put in, to look for, to put back */
	uint64_t done, found;     /* of put; of find */
	struct str held;
};

/* Adds to out what can go on. */
void secrets_stream_add(struct secrets_stream *stream, struct slice bytes, struct str *out);
void secrets_stream_end(struct secrets_stream *stream, struct str *out);
void secrets_stream_done(struct secrets_stream *stream);

#endif
