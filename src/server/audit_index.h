/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the audit log, made of lines of the launcher's journal, which is the truth: one line makes one row, by its number,
 * however often it is read. What is not in the store (a kill between the two, a database that was put back) is mended: at the
 * start, a bit after the store did not take a row, and by `cloche reindex`. */
#ifndef SERVER_AUDIT_INDEX_H
#define SERVER_AUDIT_INDEX_H

#include <jansson.h>
#include <stdatomic.h>

#include "server/server.h"
#include "util/err.h"
#include "util/scoped.h"

#define AUDIT_INDEX_REVOKED "key.revoked"

/* The row of a line of the journal. What the store does not take now is mended later: only a line that is none of ours fails,
 * -EBADMSG. */
int audit_index_add(struct server *server, const json_t *line, struct err *err);

struct audit_counts {
	int64_t lines;   /* that were read */
	int64_t changed; /* rows that were added or put right */
	int64_t old;     /* lines that are older than rows are kept: they stay out */
	int64_t revoked; /* keys that were revoked again */
};
/* is_all: from the first line; else from the first one that is missing. Ends early, with -ECANCELED, once *is_ending (may be
 * NULL) is set. */
int audit_index_mend(struct server *server, bool is_all, const atomic_bool *is_ending,
	struct audit_counts *counts, struct err *err);

/* Mends at the start, and when asked to by audit_index_add(), on a worker. */
struct audit_mender *audit_mender_new(struct server *server);
/* Before the workers are freed. */
void audit_mender_stop(struct audit_mender *mender);
void audit_mender_free(struct audit_mender *mender);
SCOPED_TYPE(audit_mender)

#endif
