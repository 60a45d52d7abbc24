/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a journal that are no events: headers, hashes, files, gaps. */
#ifndef RECORD_CONTROL_LINE_H
#define RECORD_CONTROL_LINE_H

#include <stdint.h>

#include "record/record_head.h"
#include "util/digest.h"
#include "util/slice.h"
#include "util/str.h"

#define CONTROL_LINE_SEQ_MAX  (1ULL << 53) /* larger numbers are no seq: JSON readers round them */
#define CONTROL_LINE_NAME_MAX 95

enum control_line_kind {
	CONTROL_LINE_EVENT,  /* starts as an event does; whether it is one is for others to say */
	CONTROL_LINE_HEADER, /* journal, sandbox, meta_sha256 or segment and prev */
	CONTROL_LINE_HASH,   /* h, batch, n, seq, events, sums */
	CONTROL_LINE_FILE,   /* name, sha256, bytes */
	CONTROL_LINE_GAP,    /* first, last */
	CONTROL_LINE_BAD,    /* none of these */
};

struct control_line {
	enum control_line_kind kind;
	char journal[8], sandbox[RECORD_ID_MAX + 1];
	char hash[DIGEST_HEX_SIZE]; /* h, prev, meta_sha256 or sha256 */
	char name[CONTROL_LINE_NAME_MAX + 1];
	uint64_t segment, batch, n, seq, events, bytes, first, last;
	struct str sums;
};

/* Fills *line, whose sums are reused from line to line; zero-initialise, control_line_done() at the end. */
enum control_line_kind control_line_read(struct slice text, struct control_line *line);
void control_line_done(struct control_line *line);

/* The number of an event's line as our writer puts it: 0, or -EBADMSG where it is not there. */
int control_line_seq(struct slice text, uint64_t *ret_seq);

#endif
