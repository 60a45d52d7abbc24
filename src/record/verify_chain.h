/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the hash chain of one journal, and says which line breaks it. */
#ifndef RECORD_VERIFY_CHAIN_H
#define RECORD_VERIFY_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "record/control_line.h"
#include "record/ranges.h"
#include "util/err.h"
#include "util/str.h"

#define VERIFY_CHAIN_FINDINGS_MAX 200U

/* Sentences, a line each. */
struct verify_findings {
	struct str text;
	unsigned n;
};
void verify_chain_finding(struct verify_findings *findings, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct verify_chain {
	/* Set by the caller. */
	int dirfd;
	const char *name;   /* "log", "trace" */
	const char *sealed; /* the head that the seal names, NULL where there is none */
	bool is_live;       /* lines behind the last hash line are still being written */
	struct verify_findings *findings;
	/* Called for each line that is an event or one of ours, with where it stands ("log.jsonl line 12"). */
	void (*on_line)(void *ctx, struct slice line, const struct control_line *control,
		const char *where);
	void *ctx;

	/* What came out. */
	char head[DIGEST_HEX_SIZE];
	char id[RECORD_ID_MAX + 1], meta_sha256[DIGEST_HEX_SIZE]; /* from the log's header */
	struct ranges seqs;
	uint64_t events, last_seq;
	bool met; /* sealed was met */
	uint64_t events_at_seal, lines_behind_seal;
};

/* Negative only where a file cannot be read. */
int verify_chain_run(struct verify_chain *chain, struct err *err);
void verify_chain_done(struct verify_chain *chain);

#endif
