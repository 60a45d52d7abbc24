/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames (RFC 6455, section 5) as they come, in pieces of any size.
 *
 * Each piece is a part of one frame. The payload is given unmasked where the reader is told where to put it;
 * what the sender sent can be written again with ws_add_head() and the bytes as they came. Refused: masks on
 * the wrong side, reserved bits and opcodes, control frames that are long or cut, fragments out of order,
 * lengths in a longer form than needed. */
#ifndef PROTO_WS_H
#define PROTO_WS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

struct ws_frame {
	enum ws_opcode opcode;
	bool fin;
	bool compressed; /* RSV1: permessage-deflate (RFC 7692) */
	bool masked;
	unsigned char key[4];
	uint64_t len;
};

#define WS_MAX_HEAD 14

struct ws_reader {
	bool from_client;  /* that side masks, the other does not */
	bool may_compress; /* permessage-deflate was agreed */
	bool in_message;   /* a message has begun and not ended: continuations are due */
	bool in_payload;
	unsigned char head[WS_MAX_HEAD];
	size_t n_head;
	struct ws_frame frame;
	uint64_t done;     /* bytes of the frame's payload so far */
	const char *fault; /* where reading failed */
};

/* What one call read. */
struct ws_piece {
	bool begins;          /* reader.frame is a new frame */
	bool ends;            /* the frame is whole with this piece */
	uint64_t at;          /* where in the frame's payload the bytes stand */
	struct slice payload; /* a part of in, masked as it came */
};

/* Reads from in: the number of bytes used, 0 only for an empty in; -EBADMSG with r->fault set. */
long ws_read(struct ws_reader *r, struct slice in, struct ws_piece *ret_piece);
/* Adds payload bytes that stand at `at` in their frame, without the mask (the same function puts it on). */
void ws_unmask(const struct ws_frame *frame, uint64_t at, struct slice payload, struct str *out);
/* Adds a frame's head; len bytes of payload are to follow. */
void ws_add_head(struct str *out, const struct ws_frame *frame);

static inline bool ws_is_control(enum ws_opcode opcode)
{
	return (opcode & 8) != 0;
}

#endif
