/* SPDX-License-Identifier: Apache-2.0 */
/* A file of JSON lines in which each holds the SHA-256 of the one before, so that none can go or change unseen: the
 * ledger, the audit journal. Any number of processes may append. */
#ifndef LAUNCHER_CHAIN_H
#define LAUNCHER_CHAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"
#include "util/slice.h"
#include "util/str.h"

#define CHAIN_TEXT_MAX 1024U /* of one text in a line: escaped it may take six times that */

struct chain {
	const char *dir, *name; /* of the file, made at the first line */
	const char *what;       /* "the ledger": in sentences */
};

/* Takes the lock, reads the last line, writes one: {"v":1,"n":N,"prev":HASH,members...}. members: those of an object, with
 * its braces. is_synced: waits for the disk. A torn last line, left by a power cut, is taken off and counted in the new one.
 * ret_line (may be NULL) gets the line without its end; N counts from 1. */
int chain_append(const struct chain *chain, struct slice members, bool is_synced,
	struct str *ret_line, struct err *err);

/* The file, to be read: a descriptor. -ENOENT where there is none yet. */
int chain_open(const struct chain *chain, struct err *err);

/* Calls back for each line, oldest first; stops where the callback returns non-zero and returns that. -EBADMSG where the
 * chain is broken, with the line's number in the sentence; a callback's own -EBADMSG says that a line is none of ours. No file
 * yet: 0. */
int chain_walk(const struct chain *chain, int (*on_line)(void *ctx, const json_t *line), void *ctx,
	struct err *err);

#endif
