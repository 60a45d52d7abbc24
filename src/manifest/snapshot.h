/* SPDX-License-Identifier: Apache-2.0 */
/* A folder as it was at one moment: the stamps of every entry, and the hashes that are known. One file, used where it
 * lies (mapped), private to root. docs/change-sets.md says what it is for.
 *
 * Layout, in the machine's own byte order: struct snapshot_head; n_records struct snapshot_record, the folder itself
 * first; n_slots numbers of records, by a hash of parent and name (open addressing, SNAPSHOT_NONE is free); then
 * the text that records point into, each with a NUL behind it. Hashes come in later, by whoever reads the files, so a
 * record's state is read before its hash and written after it. */
#ifndef MANIFEST_SNAPSHOT_H
#define MANIFEST_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/digest.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

#define SNAPSHOT_NONE        UINT32_MAX
#define SNAPSHOT_RECORDS_MAX 4000000 /* 150 bytes each, twice while they are put together */

/* record.state: bits, set once. */
#define SNAPSHOT_HASHED   1u  /* sha256 and attributes are of the file with these stamps */
#define SNAPSHOT_RACY     2u  /* too young for its stamps to tell a later write */
#define SNAPSHOT_MISSED   4u  /* it was changed before it was read */
#define SNAPSHOT_LEFT     8u  /* not read: too large, or it cannot be */
#define SNAPSHOT_UNLISTED 16u /* a folder whose entries could not be had */

struct snapshot_record {
	uint64_t dev, ino;
	int64_t btime_ns; /* 0: the filesystem does not say */
	int64_t size, mtime_ns, ctime_ns;
	uint32_t mode, uid, gid; /* as on disk */
	uint32_t parent;         /* SNAPSHOT_NONE: the folder itself */
	uint32_t name, target;   /* where in the text; target: of links, else 0 */
	uint32_t state;
	uint32_t first, n_entries; /* of a folder: its entries are the records from first on */
	uint32_t unused;
	unsigned char sha256[DIGEST_LEN];
	unsigned char attributes[DIGEST_LEN]; /* all zero: none */
};

struct snapshot_head {
	char magic[8];
	uint32_t version, record_size;
	uint32_t n_records, n_slots; /* n_slots: a power of two */
	uint64_t text_len, seed;
	int64_t started_ns, ended_ns; /* wall clock: the walk */
};

struct snapshot {
	struct snapshot_head *head;
	struct snapshot_record *records;
	uint32_t *slots;
	const char *text;
	size_t len;
	int fd; /* to write hashes to; -1: only to be read */
};

/* Maps a file. -EBADMSG where it is none of ours, or cut. writable: hashes can be set. */
int snapshot_open(int dirfd, const char *name, bool writable, struct snapshot **ret_snapshot);
void snapshot_free(struct snapshot *snapshot);
SCOPED_TYPE(snapshot)

/* Whether bytes are a whole snapshot whose every reference is good. Fills *ret, which then points into them. Pure. */
bool snapshot_check(void *bytes, size_t len, struct snapshot *ret);

/* The record of a name in a folder (a record's number), or SNAPSHOT_NONE. */
uint32_t snapshot_find(const struct snapshot *snapshot, uint32_t parent, struct slice name);
/* The record of a path below the folder, slashes at its ends or not; 0 for the folder itself. */
uint32_t snapshot_find_path(const struct snapshot *snapshot, struct slice path);
/* Adds the path below the folder, "." for itself. False where the parents lead nowhere. */
bool snapshot_path(const struct snapshot *snapshot, uint32_t i, struct str *out);

static inline uint32_t snapshot_state(const struct snapshot_record *record)
{
	return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
}
/* Into the file, not through the mapping: on a full disk that would be the end of the process. What cannot be written is
 * not known. */
void snapshot_set_state(struct snapshot *snapshot, uint32_t i, uint32_t state);
void snapshot_set_hash(struct snapshot *snapshot, uint32_t i,
	const unsigned char sha256[DIGEST_LEN], const unsigned char attributes[DIGEST_LEN]);

/* For those who make one: records, those of a folder in a row, and their text (its first byte is a NUL).
 * first and n_entries are filled in. Written beside and renamed over name. */
int snapshot_write(int dirfd, const char *name, const struct snapshot_head *times,
	struct snapshot_record *records, size_t n, const struct str *text);

#endif
