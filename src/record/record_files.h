/* SPDX-License-Identifier: Apache-2.0 */
/* The files beside the journals: outputs, casts, changes. A record belongs to its user, so nothing in it is
 * followed: neither a file nor a folder that became a link. */
#ifndef RECORD_RECORD_FILES_H
#define RECORD_RECORD_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record_internal.h"
#include "util/digest.h"

/* Makes a new file (its path is "outputs/..." and the like), and its folder where that is not there. Its
 * descriptor, or a negative errno; -EINVAL for a path that is none of ours. */
int record_files_create(const struct record *record, const char *path);
/* One that is there, to read; dirfd is the record's. */
int record_files_open(int dirfd, const char *path);
int record_files_hash(int fd, struct digest *ret_digest, uint64_t *ret_bytes);
/* Enters a finished file in the log, with its hash. */
void record_files_enter(
	struct record *record, const char *path, const struct digest *digest, uint64_t bytes);

/* A file in one piece: whoever finds it, also after a kill, finds all of it. It is entered. -EEXIST: there is one. */
#define RECORD_FILES_PART ".part" /* behind its name, while it is written */
int record_files_put(struct record *record, const char *path, struct slice bytes);
/* What a killed one left of that. */
void record_files_drop_part(int dirfd, const char *path);

/* Calls back with the path of each entry of these folders; of names that are none of ours, too. */
int record_files_walk(int dirfd, void (*on_path)(void *ctx, const char *path), void *ctx);

#endif
