/* SPDX-License-Identifier: Apache-2.0 */
/* What a TLS client says before anything is encrypted: the first handshake message (RFC 8446, 4.1.2), which may come
 * in any number of TCP segments and TLS records. Strict where servers differ: what some would read as one name and
 * some as another is malformed. Reading costs as much as there are bytes, however they are cut. */
#ifndef PROTO_TLS_HELLO_H
#define PROTO_TLS_HELLO_H

#include "proto/url.h"

#define TLS_HELLO_MAX 65536 /* bytes of the message; what browsers send is under 3000 */

enum tls_hello_result {
	TLS_HELLO_MORE,      /* so far it is one; give more */
	TLS_HELLO_NAME,      /* host is set */
	TLS_HELLO_NO_NAME,   /* a hello that names no server */
	TLS_HELLO_NOT_TLS,   /* the first bytes are of something else */
	TLS_HELLO_MALFORMED, /* why says what is wrong */
};

/* Zero-initialise; tls_hello_done() at the end. */
struct tls_hello {
	enum tls_hello_result result;
	struct url_host host; /* canonical; a name that spells an address has that kind */
	struct slice alpn; /* protocols as they stand there, each behind its length; none: empty */
	bool ech;          /* brings an encrypted hello, real or for show: host may be a front */
	const char *why;   /* a few words */

	struct str body; /* the message so far, its four bytes of head included */
	unsigned char head[5];
	size_t n_head, record_left;
};

void tls_hello_done(struct tls_hello *hello);
/* Reads on. Bytes behind the message are not looked at. */
enum tls_hello_result tls_hello_feed(struct tls_hello *hello, struct slice in);
/* No more will come: one that is not whole is malformed. */
void tls_hello_give_up(struct tls_hello *hello);
/* Whether a protocol is among those of alpn: "h2". */
bool tls_hello_offers(const struct tls_hello *hello, const char *protocol);

#endif
