/* SPDX-License-Identifier: Apache-2.0 */
/* One record on its way into the store: reads what is new in its log and adds it. What the store did not take stays here and is
 * given to it again first, so nothing is read twice however long the store is away. One thread at a time. */
#ifndef SERVER_INDEX_RECORD_H
#define SERVER_INDEX_RECORD_H

#include "server/server.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/str.h"

struct index_counts {
	int64_t rows, events, samples; /* that were added */
	int64_t wrong;                 /* rows and events that said something else, and went */
};

struct index_record;

/* is_rebuild: from the start, and what the store has of it is held against it. -ENOENT: there is no such record, or no account
 * has it; -EACCES: it is not ours to read. */
int index_record_open(struct server *server, const char *id, bool is_rebuild,
	struct index_record **ret_record, struct err *err);
void index_record_free(struct index_record *record);
SCOPED_TYPE(index_record)

/* Reads on up to the end of what there is. row gets the exec-log row of exec where that is among what was read or still waits,
 * also where the store fails; pages then wait until it has it (store_log_answered()). */
struct index_wanted {
	const char *exec; /* NULL: none */
	struct str *row;
	bool is_found;
};
int index_record_read(struct index_record *record, struct index_wanted *wanted, struct err *err);

enum index_record_end {
	INDEX_RECORD_OPEN,   /* more may come */
	INDEX_RECORD_ENDING, /* it has ended, but its writer is still there */
	INDEX_RECORD_OVER,   /* nothing will come any more, and all of it is in the store */
};
enum index_record_end index_record_end(const struct index_record *record);
/* Whether it is the account's, and a connection of it may wait for an answer. From any thread. */
bool index_record_is_held(const struct index_record *record, const char *account, int64_t now_ms);
struct index_counts index_record_counts(const struct index_record *record);

#endif
