/* SPDX-License-Identifier: Apache-2.0 */
/* One journal of a record: lines gathered into batches, each closed by a hash line.
 *
 * A hash line holds the SHA-256 of every byte from the start of the hash line before it (in the first batch
 * of a file: from the start of the file) up to its own start. So each hash stands on the one before, and a
 * stranger needs only sha256sum. docs/record-format.md is the long form. */
#ifndef RECORD_RECORD_JOURNAL_H
#define RECORD_RECORD_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/digest.h"
#include "util/str.h"

#define RECORD_JOURNAL_LINE_MAX     (8U << 20) /* with its end; readers refuse longer ones */
#define RECORD_JOURNAL_BATCH_BYTES  65536U     /* a batch is closed when it has grown past this */
#define RECORD_JOURNAL_BATCH_LINES  1024U
#define RECORD_JOURNAL_SEGMENT_MAX  (64U << 20) /* of trace; then the next file begins */
#define RECORD_JOURNAL_N_SEGMENTS   99999U
#define RECORD_JOURNAL_NAME_SIZE    24

#define RECORD_JOURNAL_HASH_START   "{\"h\":\""
#define RECORD_JOURNAL_HEADER_START "{\"journal\":\""

struct record_journal {
	int dirfd, fd;           /* dirfd is the record's; fd -1: no file yet */
	const char *name;        /* "log", "trace" */
	const char *id;          /* of the record, borrowed */
	const char *meta_sha256; /* stands in the log's header, borrowed; NULL in trace */
	uid_t uid;
	gid_t gid;
	unsigned segment; /* of trace, from 1; 0 in the log */
	uint64_t file_bytes;
	bool is_new;          /* its name may not be on the disk yet */
	struct str buf;       /* what is not written yet, the open batch last */
	size_t line_at;       /* where in buf the last line begins */
	size_t batch_at;      /* where in buf the open batch begins */
	struct str hash_line; /* the one before the open batch, empty at the start of a file */
	struct str sums;      /* of the open batch's lines, in hex */
	unsigned n;           /* lines of the open batch */
	uint64_t batches, events, seq; /* so far, the open batch included (batches: without it) */
	uint64_t closed_events, closed_seq; /* up to the last hash line */
	char head[DIGEST_HEX_SIZE];
};

void record_journal_init(
	struct record_journal *journal, int dirfd, const char *name, const char *id);
void record_journal_done(struct record_journal *journal); /* closes; what is not written is lost */

/* A line goes in by writing it to record_journal_line_begin()'s str, without its end, and calling
 * record_journal_line_end(), which says where it stands (good until the next begin or flush). seq 0: no event. */
struct str *record_journal_line_begin(struct record_journal *journal);
struct slice record_journal_line_end(struct record_journal *journal, uint64_t seq);
void record_journal_line_drop(struct record_journal *journal); /* what was written since begin */
bool record_journal_is_batch_full(const struct record_journal *journal);

/* Closes the batch, if it has lines, and writes all there is. On an error the rest stays buffered. */
int record_journal_flush(struct record_journal *journal, bool sync);

/* What a hash line says: head over n lines with these sums; seq and events of this journal so far. */
struct record_journal_hash {
	const char *head;
	uint64_t batch, n, seq, events;
	struct slice sums;
};
/* Adds one, with its end. */
void record_journal_hash_line(struct str *out, const struct record_journal_hash *hash);
/* "log.jsonl", "trace-00002.jsonl" */
void record_journal_file_name(
	const char *name, unsigned segment, char ret[RECORD_JOURNAL_NAME_SIZE]);
/* Eight hex digits that point out a changed line; no proof of anything. */
void record_journal_line_sum(struct slice line, char ret[9]);

#endif
