/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests and answers beside the journals: bodies/<SHA-256 of what is in it>, each once.
 *
 * Events name them by the hash of what was sent. What is kept may be another text, with secrets taken out, so the
 * last few names are remembered until the event comes. */
#ifndef RECORD_RECORD_BLOB_H
#define RECORD_RECORD_BLOB_H

#include "record/record_internal.h"

#define RECORD_BLOB_FOLDER "bodies"

/* Whether an event names a blob. */
bool record_blob_is_named(const struct event *ev);
/* Puts the names of what was kept into an event; takes out those of what was not, and says that the body is cut. */
void record_blob_mend(const struct record *record, struct event *ev);
/* Opens one to read; -EINVAL where the name is no hash. dirfd is the record's. */
int record_blob_open(int dirfd, struct slice sha256);
/* Counts those that an earlier writer kept. */
void record_blob_count(struct record *record);
void record_blob_done(struct record_blobs *blobs);

/* Where events name them. */
struct record_blob_field {
	enum event_field name, truncated;
};
#define RECORD_BLOB_FIELDS 4
extern const struct record_blob_field record_blob_fields[RECORD_BLOB_FIELDS];

#endif
