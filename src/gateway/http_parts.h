/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTTP/1 machine (http_machine.h), for its own files only: http_machine.c holds the buffers and
 * the ends of both sides, http_request.c reads the client, http_response.c the server, http_upgrade.c both once
 * they speak WebSocket. */
#ifndef GATEWAY_HTTP_PARTS_H
#define GATEWAY_HTTP_PARTS_H

#include "gateway/http_machine.h"
#include "gateway/http_turn.h"
#include "proto/http1.h"
#include "proto/ws.h"

#define HTTP_HIGH_WATER 65536 /* bytes waiting for a side, above which the other is not read */
#define HTTP_PIECE      32768 /* of a body, handled at once */
#define HTTP_DRAIN_MAX \
	65536 /* a refused request's body up to this is read, and the connection kept */

struct http_out {
	struct str bytes;
	size_t at; /* sent already */
};

/* The exchange under way. */
struct http_pair {
	struct http_turn turn;
	struct str request_text, response_text; /* the heads, which slices point into */
	struct http1_head request, response;
	struct http1_body request_body, response_body;
	bool has_response;   /* the final one has begun */
	bool response_ended; /* nothing more is due to the client */
	bool keep;           /* the connection goes on behind it */
};

struct http_ws_side {
	struct ws_reader reader;
	struct http_copy message, control;
	int opcode;                  /* of the message */
	bool in_message, in_control; /* it has begun and is not told of yet */
	bool compressed;
};

struct http_machine {
	struct http_setup setup;
	struct http_out out[MACHINE_SIDES];
	struct str head[MACHINE_SIDES]; /* that is being gathered */
	size_t scanned[MACHINE_SIDES];
	bool ended[MACHINE_SIDES];   /* nothing more comes from it */
	bool closing[MACHINE_SIDES]; /* nothing more goes to it */
	bool discard;                /* the exchanges are over: what still comes is dropped */
	int error;
	struct http_pair *pair;  /* NULL between exchanges */
	struct http_ws_side *ws; /* of both sides, once they were upgraded */
	struct str plain;        /* a piece as it goes on, or without its mask */
};

/* Bytes taken, 0 where more is needed than there is or than fits. */
size_t http_request_take(struct http_machine *m, struct slice in);
size_t http_response_take(struct http_machine *m, struct slice in);
size_t http_upgrade_take(struct http_machine *m, enum machine_side from, struct slice in);

void http_request_cut(struct http_machine *m);  /* the client ended */
void http_response_cut(struct http_machine *m); /* the server ended */
/* The server's 101 was sent on: from here on frames. */
void http_upgrade_begin(struct http_machine *m);
void http_upgrade_done(struct http_machine *m);

/* Gathers a head: *ret_used bytes of in were taken. 1 when it is whole in m->head[side], 0 where more is needed,
 * -EBADMSG with the fault. */
int http_machine_gather(struct http_machine *m, enum machine_side side, struct slice in,
	size_t *ret_used, struct http1_fault *ret_fault);
/* The exchange is over where both of its halves are. */
void http_machine_settle(struct http_machine *m);
void http_machine_close(struct http_machine *m); /* no exchange follows */
void http_machine_drop_pair(struct http_machine *m);
/* The answer to a refused request; the connection goes on where `keep`. */
void http_machine_answer_refusal(struct http_machine *m, bool keep);
/* A stand-in was about to go where it must not, and that was told: ends the exchange. */
void http_machine_break_off(struct http_machine *m);
/* Fields that only mean the connection, and so are written anew or left out. */
bool http_machine_is_hop(struct slice name);
/* The fields and the end of a head's lines, framing written anew. more: "Upgrade" or NULL for Connection. */
void http_machine_add_connection(struct str *out, unsigned minor, bool keep, const char *more);

#endif
