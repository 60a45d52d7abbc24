/* SPDX-License-Identifier: Apache-2.0 */
/* The record as its own folder sees it. */
#ifndef RECORD_RECORD_INTERNAL_H
#define RECORD_RECORD_INTERNAL_H

#include <sys/stat.h>

#include "record/record.h"
#include "record/record_journal.h"
#include "record/redact.h"

#define RECORD_RESERVE_BYTES (256U << 10)
#define RECORD_BLOB_PAIRS    256U /* last blobs, whose events may still come */

struct record_blob_pair {
	char named[DIGEST_HEX_SIZE], kept[DIGEST_HEX_SIZE];
};

struct record_blobs {
	int fd;                         /* the folder, made at the first; -1 */
	uint64_t files, bytes, max;     /* that were written, of that many bytes at most */
	struct record_blob_pair *pairs; /* RECORD_BLOB_PAIRS of them, likewise */
	size_t next;
};

struct record {
	int dirfd;
	char id[RECORD_ID_MAX + 1];
	char meta_sha256[DIGEST_HEX_SIZE];
	uid_t uid;
	gid_t gid;
	bool is_durable;
	bool wants_sync;              /* an exec's start or row is buffered */
	bool has_reserve, is_closing; /* is_closing: the reserve was given up */
	int64_t made_ns;
	int failed; /* the errno that stays */
	uint64_t seq, rows;
	struct record_journal log, trace;
	struct redact *redact;
	struct ZSTD_CCtx_s *short_outputs; /* compresses them; made at the first */
	struct record_blobs blobs;
	struct record_mend mend;
};

/* The journals, once dirfd and owner stand. */
void record_internal_init(struct record *record);
/* One of root's that a group may read: of a control plane, whose other half has no rights. */
bool record_internal_has_readers(uid_t uid, gid_t gid);
/* A new file of the record, not followed, mode 0600, for its owner: a descriptor or a negative errno. */
int record_internal_create(int dirfd, const char *name, int flags, uid_t uid, gid_t gid);
/* One that is there: a regular file with one name, not followed. *ret_st where asked for. */
int record_internal_open(int dirfd, const char *name, int flags, struct stat *ret_st);
/* A folder of the record, made where it is not there. */
int record_internal_folder(int dirfd, const char *name, uid_t uid, gid_t gid);
/* The one writer's lock, on log.jsonl: 0, or -EBUSY. It goes with the last descriptor. */
int record_internal_lock(int log_fd);
/* A plain name for a file: no folder, no dot at its start. */
bool record_internal_is_name(const char *name);

#endif
