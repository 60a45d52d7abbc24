/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a TLS connection (RFC 5246, 8446) without a socket: cipher bytes in and out on one face, plain
 * bytes in and out on the other. Both directions are bounded: what does not fit is not taken.
 *
 * The caller loops: what came from the socket to tls_end_put(), what tls_end_plain() shows to whoever reads,
 * his answer to tls_end_write(), what tls_end_cipher() shows to the socket; until nothing moves. An end holds
 * no buffer while it has nothing to hand over. */
#ifndef GATEWAY_TLS_END_H
#define GATEWAY_TLS_END_H

#include <stdbool.h>
#include <stddef.h>

#include "util/scoped.h"
#include "util/slice.h"

struct tls_end;

enum tls_end_state {
	TLS_END_HANDSHAKE,
	TLS_END_OPEN, /* the handshake is done; one or both directions may be closed since */
	TLS_END_FAILED,
};

/* Why it failed, for those who treat it differently. */
enum tls_end_failure {
	TLS_END_NO_FAILURE,
	TLS_END_BAD_CERTIFICATE, /* the peer's, which we refused */
	TLS_END_ALERT,           /* the peer said so */
	TLS_END_CUT_OFF,         /* it closed during the handshake */
	TLS_END_BROKEN,          /* what it sent is no TLS that we speak */
};

void tls_end_free(struct tls_end *end);
SCOPED_TYPE(tls_end)

/* From the socket: how many of these bytes it took. Fewer where plain bytes wait to be read, or cipher bytes to
 * be sent. One that failed takes everything and does nothing. */
size_t tls_end_put(struct tls_end *end, const void *p, size_t len);
/* The socket is at its end of file. Harmless after close_notify. */
void tls_end_put_end(struct tls_end *end);
/* What goes to the socket, alerts included; borrowed until the next call. */
struct slice tls_end_cipher(struct tls_end *end);
void tls_end_sent(struct tls_end *end, size_t n);

/* What the peer said; borrowed until the next call. */
struct slice tls_end_plain(struct tls_end *end);
void tls_end_took(struct tls_end *end, size_t n);
/* How many of these bytes it took to be sent: none before the handshake is done or after tls_end_close(). */
size_t tls_end_write(struct tls_end *end, const void *p, size_t len);
/* Says close_notify. What the peer sends can still be read. Once is enough; during a handshake it does nothing. */
void tls_end_close(struct tls_end *end);

enum tls_end_state tls_end_state(const struct tls_end *end);
enum tls_end_failure tls_end_failure(const struct tls_end *end);
/* Of one that failed: a few words, "alert unknown CA", "certificate has expired". Else "". */
const char *tls_end_reason(const struct tls_end *end);
/* The alert that should tell others about the failure, where they had one with us: RFC 8446, 6.2. */
unsigned char tls_end_fitting_alert(const struct tls_end *end);
/* Nothing more comes from the peer, which closed or failed, and all it said was read. */
bool tls_end_is_at_end(const struct tls_end *end);
/* It is, and the peer did not say close_notify: what was read may be cut off. */
bool tls_end_is_cut_off(const struct tls_end *end);
/* The application protocol that was agreed on, "h2"; "" where none was. */
const char *tls_end_alpn(const struct tls_end *end);
/* Bytes of memory, about. */
size_t tls_end_holds(const struct tls_end *end);
/* The peer has asked for a certificate of ours, which it did not get. */
bool tls_end_was_asked(const struct tls_end *end);

#endif
