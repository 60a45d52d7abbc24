/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its answer. Whoever gets one (http_conn.h) must end it exactly once, with exchange_reply() or
 * exchange_end(), also when its client has left meanwhile. All of it belongs to the loop's thread; only what was asked may be
 * read on another one, until it ends. */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/http1.h"
#include "util/id.h"
#include "util/slice.h"

struct exchange;

/* What a request came by, as the audit log names it. */
struct http_peer {
	char address[64];      /* "127.0.0.1:40312", "[::1]:2", "unix", or "sandbox:sb_..." */
	bool is_local;         /* over the Unix socket */
	unsigned uid;          /* of a local one */
	char sandbox[ID_SIZE]; /* a program in there called; "": nobody's */
	bool is_tls;
	unsigned char to
		[16]; /* the address that it came to, IPv4 as ::ffff:a.b.c.d; not of a local one */
};

const struct http1_head *exchange_head(const struct exchange *exchange); /* good until it ends */
struct slice exchange_body(const struct exchange *exchange);
const struct http_peer *exchange_peer(const struct exchange *exchange);
bool exchange_has_client(const struct exchange *exchange);
/* Called once when the client leaves before the end. The exchange must still be ended. */
void exchange_on_gone(struct exchange *exchange, void (*on_gone)(void *arg), void *arg);
/* Of a request that is asked first (http_conn.h): it may have its body. on_body is called once, perhaps before this returns:
 * is_there: it is in exchange_body(); else the client has left or was refused, and the exchange must still be ended. */
void exchange_read_body(
	struct exchange *exchange, void (*on_body)(void *arg, bool is_there), void *arg);

/* More fields for the answer: whole lines with their ends, made by http1_add_field(). Before the first of the below. */
void exchange_add_fields(struct exchange *exchange, struct slice lines);
/* The whole answer; type NULL: no body (and no type). Ends the exchange. */
void exchange_reply(
	struct exchange *exchange, unsigned status, const char *type, struct slice body);

/* An answer of unknown length. on_drained is called each time all that was written has gone out. */
void exchange_begin(struct exchange *exchange, unsigned status, const char *type);
void exchange_write(struct exchange *exchange, struct slice bytes);
size_t exchange_backlog(const struct exchange *exchange); /* bytes that wait for the client */
void exchange_on_drained(struct exchange *exchange, void (*on_drained)(void *arg), void *arg);
/* The client is told why and let go of: by an answer, by the last event of a stream of events, or, where neither can be, by
 * the cut of its connection. It has left then, as by itself. */
struct http_refusal;
void exchange_dismiss(struct exchange *exchange, const struct http_refusal *refusal);
/* is_whole false: the connection is cut, so that the client sees that something is missing. */
void exchange_end(struct exchange *exchange, bool is_whole);

#endif
