/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are in the store and no more on this host: those of which the ledger says that they were removed go from the
 * store, too. Of one that went without a word the rows are all there is: they stay. */
#ifndef SERVER_LOST_RECORDS_H
#define SERVER_LOST_RECORDS_H

#include "server/call.h"
#include "util/err.h"

struct lost_counts {
	int64_t forgotten;
	int64_t missing; /* nobody entered that they were removed */
};

/* The one: 0 also where it is there. -EAGAIN and the like: not now. */
int lost_records_look(struct server *server, const char *sandbox, struct err *err);
/* All of this host. */
int lost_records_sweep(struct server *server, struct lost_counts *counts, struct err *err);

/* Its rows go, a tombstone stays, and whoever did that writes the line of the audit log: as is who removed it. 0, with no line,
 * where another replica was first. */
int lost_records_forget(struct call *as, const char *sandbox, const char *why, struct err *err);

#endif
