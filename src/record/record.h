/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one record directory: the one truth about a sandbox. docs/record-format.md says how it is laid out.
 *
 * One writer at a time (the lock in the directory); the supervisor while it lives, gc for a record whose
 * writer died. Events are numbered, redacted, encoded, chained and batched here and nowhere else. */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "event/event.h"
#include "record/record_head.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/scoped.h"

/* Of a record's files, the one that goes last where they have to go one by one: the rest is nothing without it. */
#define RECORD_LAST "log.jsonl"

struct record;

struct record_config {
	const char *dir; /* <state>/records/<id>: made here, mode 0700 */
	const char *id;
	struct slice meta; /* JSON object: spec, host, versions, times; becomes meta.json */
	uid_t owner_uid;   /* files belong to the user who asked, mode 0600 */
	gid_t owner_gid;
	bool raw;           /* no redaction */
	bool durable;       /* sync at exec starts and rows */
	uint64_t blobs_max; /* bytes of bodies, RECORD_BLOB_BYTES_MAX where 0 */
};

int record_create(const struct record_config *config, struct record **ret_record, struct err *err);
/* Takes over a record whose writer died: refuses (-EBUSY) while another holds the lock, mends a torn last line,
 * goes on with the next seq. */
int record_reopen(const char *dir, struct record **ret_record, struct err *err);

/* Goes on with one that was suspended: as record_reopen(), by a writer that will write as the first one did. Of
 * config, raw, durable and blobs_max are looked at. */
int record_resume(const struct record_config *config, struct record **ret_record, struct err *err);

/* Numbers (seq, wall_ms where 0) and keeps one event. *ret_line, where asked for, is the line as kept,
 * without its end, good until the next call. Buffers; -ENOSPC and the like come from here or from
 * record_flush(), and stay until the record is closed. */
int record_emit(struct record *record, struct event *ev, struct slice *ret_line);
/* A text that is kept as it is wherever it stands for a secret: the stand-in of one. Copied. */
void record_allow_text(struct record *record, struct slice text);
/* Writes what is buffered, with a hash line that closes the batch. sync: to the disk. */
int record_flush(struct record *record, bool sync);
uint64_t record_next_seq(const struct record *record);
uint64_t record_n_rows(
	const struct record *record); /* exec.end so far: the next row's id is one more */

/* -ENOSPC came: gives up the space kept back for this, writes what was buffered, and from then on keeps
 * only what closes a record (log events and trace.dropped, trace.blind); the rest is refused with -ENOSPC,
 * unnumbered, for the caller to count. */
int record_release_reserve(struct record *record);

/* What record_reopen() found and mended; all 0 in a record that was created. */
struct record_mend {
	uint64_t torn_bytes; /* of unfinished lines, moved to torn.bin */
	uint64_t lost;       /* numbers given out whose events never reached the disk */
};
struct record_mend record_get_mend(const struct record *record);

/* The head to be signed: what is flushed so far; an end is flushed first, so that nothing stands behind it. */
void record_get_head(struct record *record, enum record_end end, struct record_head *ret_head);
/* Keeps a signature (made by the launcher over record_head_text()) in seal.json. */
int record_put_seal(struct record *record, const struct record_head *head,
	const char *signature_b64, const char *key_fingerprint, const char *key_b64);

void record_free(struct record *record); /* flushes and lets go of the lock */
SCOPED_TYPE(record)

/* Keeps the list of changes at the end (manifest/changes_json.h) as changes/end.json; its hash goes into the log. */
#define RECORD_CHANGES_NAME "changes/end.json"
int record_put_changes(struct record *record, struct slice json);

/* Whole outputs of one exec, beside the journals: outputs/<exec>.out.zst, .err.zst, up to a cap each. There is
 * a file where there was output; short ones are made at the end. A write that fails says so from then on. */
struct record_output;
int record_output_open(struct record *record, const char *exec_id, const char *suffix, size_t cap,
	struct record_output **ret_output, struct err *err);
int record_output_write(struct record_output *output, const void *p, size_t len);
/* Ends the frame and enters the file's hash in the log. By the record's own thread; writes may run on another. */
void record_output_free(struct record_output *output);
SCOPED_TYPE(record_output)

#define RECORD_BLOB_BYTES_MAX (4ULL << 30) /* of all bodies of a record */
#define RECORD_BLOB_FILES_MAX 250000U
enum record_blob_part {
	RECORD_BLOB_WHOLE,
	RECORD_BLOB_HEAD, /* the first bytes of a body, what follows is not there */
	RECORD_BLOB_TAIL, /* the last ones, likewise */
};
/* Keeps bytes of a body as bodies/<SHA-256>, once however often they come, and without secrets unless the record is
 * raw. Comes before the event that names them (body_blob and its kin) by the hash of what was given here: the record
 * puts *ret_sha256 there; where nothing was kept it leaves the name out and marks the body as cut. -EDQUOT: there are
 * as many bodies as a record may have. */
int record_blob_put(struct record *record, struct slice bytes, enum record_blob_part part,
	char ret_sha256[DIGEST_HEX_SIZE]);

/* A terminal's recording as asciicast v2: casts/<exec>.cast. */
struct record_cast;
struct record_cast_start {
	const char *exec_id;
	const char *title; /* NULL: none */
	unsigned short rows, columns;
};
int record_cast_open(struct record *record, const struct record_cast_start *start,
	struct record_cast **ret_cast, struct err *err);
int record_cast_output(
	struct record_cast *cast, const void *p, size_t len); /* UTF-8 cut right over calls */
int record_cast_resize(struct record_cast *cast, unsigned short rows, unsigned short columns);
void record_cast_free(struct record_cast *cast); /* enters the file's hash in the log */
SCOPED_TYPE(record_cast)

#endif
