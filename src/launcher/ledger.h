/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own thin list of all records' heads and of what was done to them: <state>/ledger.jsonl, a line
 * an act. Each line holds the SHA-256 of the line before it, so none can go or change unseen. */
#ifndef LAUNCHER_LEDGER_H
#define LAUNCHER_LEDGER_H

#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

#define LEDGER_REMOVE "remove"   /* the act by which a record goes; its detail says why: */
#define LEDGER_AGED   "aged out" /* it was too old, or there was no room for it */

struct ledger_line {
	const char *
		act; /* "open", "head", "end", LEDGER_REMOVE, "remove-bodies", "apply", "discard" */
	const char *sandbox;
	const char *head;   /* hex, or NULL */
	const char *actor;  /* "uid:1000" */
	const char *detail; /* program, exit status, or what was done; NULL */
	uint64_t seq;       /* of the head */
	uid_t owner;
	int64_t at_ms; /* when; 0 to append: now */
};

/* Takes the lock, reads the last line for the chain, writes one line; waits for the disk where something is removed. A torn
 * last line, left by a power cut, is taken off and counted in the new one. */
int ledger_append(const char *state_dir, const struct ledger_line *line, struct err *err);

/* Calls back for each line, oldest first; stops where the callback returns non-zero and returns that.
 * -EBADMSG where the chain is broken, with the line's number in the sentence. No ledger yet: 0. */
int ledger_walk(const char *state_dir, int (*on_line)(void *ctx, const struct ledger_line *line),
	void *ctx, struct err *err);

/* Whether the ledger has an act of a sandbox: 1, 0, or a negative errno. */
int ledger_has_act(const char *state_dir, const char *sandbox, const char *act);

/* The newest head that the ledger knows of a sandbox, read from the end of the file and without checking
 * the chain: 0, or -ENOENT. */
#define LEDGER_HEAD_SIZE 65
int ledger_find_head(const char *state_dir, const char *sandbox, char ret_head[LEDGER_HEAD_SIZE],
	uint64_t *ret_seq, struct err *err);

#endif
