/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a record: chains, sequence, starts without ends, seal. Says what it found, a finding at a time. */
#ifndef RECORD_VERIFY_H
#define RECORD_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"
#include "util/str.h"

struct verify_options {
	const char *key_b64;     /* the host's public key to believe; NULL: only self-consistency */
	const char *expect_head; /* hex kept elsewhere; NULL: none */
	/* What the host's ledger says of this record, NULL or 0 where it is not asked. */
	const char *ledger_head;
	uint64_t ledger_seq;
	/* Ed25519 check: 0 good, -EBADMSG not. The launcher module has it; NULL: signatures are not looked at. */
	int (*check_signature)(
		const char *key_b64, const char *text, size_t len, const char *signature_b64);
	/* Whether it is entered somewhere that the bodies were taken away: 1 or 0, negative where that cannot be told. Asked
	 * where some are missing; NULL: it is not. */
	int (*are_bodies_removed)(void *ctx);
	void *ctx;
};

struct verify_result {
	uint64_t events, first_seq, last_seq;
	bool is_intact; /* no finding */
	bool is_sealed; /* its end bears a good signature by key_b64 */
	bool is_cut;    /* its writer died; the end is marked so */
	char head[65];  /* as sealed; empty where it never was */
	uint64_t
		bodies_gone; /* that are missing, which is no finding: it is entered (bodies_removed), or cannot be told */
	bool bodies_removed;
	struct str findings; /* one sentence a line: "log.jsonl line 12 was changed" */
};
void verify_result_done(struct verify_result *result);

/* Negative only where the record cannot be read at all. */
int verify_record(const char *dir, const struct verify_options *options,
	struct verify_result *ret_result, struct err *err);

#endif
