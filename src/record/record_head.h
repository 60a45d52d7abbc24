/* SPDX-License-Identifier: Apache-2.0 */
/* What is signed of a record: how far it goes, where its chains stand, whether that is the end. */
#ifndef RECORD_RECORD_HEAD_H
#define RECORD_RECORD_HEAD_H

#include <stdint.h>

#include "util/digest.h"
#include "util/slice.h"
#include "util/str.h"

#define RECORD_ID_MAX        63
#define RECORD_HEAD_TEXT_MAX 512

/* Signed with the rest: otherwise whoever cuts a record at an earlier head could call that its end. */
enum record_end {
	RECORD_OPEN,      /* more is to come */
	RECORD_FINAL,     /* closed by its writer */
	RECORD_CUT,       /* its writer died, gc closed it */
	RECORD_SUSPENDED, /* closed by its writer, who goes on one day */
};

struct record_head {
	uint64_t seq;    /* of the last event that it covers */
	uint64_t events; /* how many */
	enum record_end end;
	char log[DIGEST_HEX_SIZE], trace[DIGEST_HEX_SIZE]; /* chain heads of both journals */
	char head
		[DIGEST_HEX_SIZE]; /* SHA-256 of the text below: how the head is named everywhere */
};

/* Adds the canonical text, which is what gets signed; the same from writer and reader. head->head has no
 * part in it. */
void record_head_text(const struct record_head *head, const char *id, struct str *out);
/* Sets head->head from the rest. */
void record_head_seal(struct record_head *head, const char *id);
/* Reads a text back, to the letter: -EBADMSG for anything record_head_text() does not write. */
int record_head_parse(
	struct slice text, char ret_id[RECORD_ID_MAX + 1], struct record_head *ret_head);

const char *record_head_end_name(enum record_end end); /* "open", "final", "cut", "suspended" */
int record_head_find_end(struct slice name, enum record_end *ret_end); /* -ENOENT */

#endif
