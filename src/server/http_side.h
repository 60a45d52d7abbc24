/* SPDX-License-Identifier: Apache-2.0 */
/* What connections of clients have in common, whoever answers them: http_conn.h, preview_conn.h. */
#ifndef SERVER_HTTP_SIDE_H
#define SERVER_HTTP_SIDE_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <openssl/ssl.h>
#include <stdbool.h>

#include "proto/http1.h"
#include "util/str.h"

/* Over an accepted socket, which is taken over; tls may be NULL. NULL: it cannot be had, and the socket is still there. */
struct bufferevent *http_side_open(struct event_base *base, int fd, SSL_CTX *tls);

/* Whether what was an error of TLS is that the first bytes were of plain HTTP. */
bool http_side_is_plain(struct bufferevent *bev);
/* The same connection without TLS, instead of bev, which is freed; NULL where there is no descriptor for it, and bev stays. */
struct bufferevent *http_side_make_plain(struct event_base *base, struct bufferevent *bev);

/* Takes a whole head off in and adds it to out: 1; 0 where more is needed; negative, with *ret_fault. *scanned is 0 for a
 * new head and kept between calls. */
int http_side_take_head(
	struct evbuffer *in, size_t *scanned, struct str *out, struct http1_fault *ret_fault);

/* For manners: who does not hear it sees the socket's end. Whoever is cut off hears nothing, and so knows that it was. */
void http_side_say_end(struct bufferevent *bev);
/* A client that is still sending what was refused would lose the answer (RFC 9112, 9.6): our side is closed, and what
 * comes is read, and thrown away, until it closes, too. */
void http_side_shut(struct bufferevent *bev);

#endif
