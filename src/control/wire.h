/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on a supervisor's control socket, a Unix stream: an eight-byte head, then the payload.
 *
 *   bytes 0-3  length of the payload, little endian, at most WIRE_MAX
 *   byte  4    type, a letter of enum wire_type
 *   bytes 5-7  zero
 *
 * A client sends one request (a JSON object with "request") and gets one answer ({"ok":true,...} or
 * {"ok":false,"error":sentence,"errno":name}). An exec that is attached to streams its bytes as frames
 * between the two, and takes stdin and messages. Descriptors ride with the first byte of a frame. */
#ifndef CONTROL_WIRE_H
#define CONTROL_WIRE_H

#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define WIRE_HEAD 8
#define WIRE_MAX  (4u << 20) /* an argv of 2 MiB, escaped, passes */

enum wire_type {
	WIRE_JSON = 'J',   /* request, answer, message */
	WIRE_STDIN = 'I',  /* to an exec; empty: end of file */
	WIRE_STDOUT = 'O', /* from an exec, or its terminal */
	WIRE_STDERR = 'E',
};

struct wire_frame {
	enum wire_type type;
	struct slice payload;
};

void wire_add(struct str *out, enum wire_type type, struct slice payload);
/* Takes the first frame of in, which keeps its bytes: the frame's size, 0 where it is not whole yet, -EBADMSG. */
long wire_take(struct slice in, struct wire_frame *ret_frame);

#endif
