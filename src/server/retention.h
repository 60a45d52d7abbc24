/* SPDX-License-Identifier: Apache-2.0 */
/* What is too old goes, at the start and every few minutes: whole records at once (the launcher removes the record and leaves a
 * tombstone in the ledger, then the store forgets its rows), and the store's own by age. Replicas may all do it. */
#ifndef SERVER_RETENTION_H
#define SERVER_RETENTION_H

#include "server/call.h"
#include "util/err.h"
#include "util/scoped.h"

struct retention *retention_new(struct server *server);
/* So that what is under way ends soon; before the workers are freed. */
void retention_stop(struct retention *retention);
void retention_free(struct retention *retention);
SCOPED_TYPE(retention)

/* Removes a record with all that is known of it, for who calls: the ledger and the store keep a tombstone, the audit log has a
 * line. 0 also where another replica did. For a worker. */
int retention_forget(struct call *as, const char *id, const char *reason, struct err *err);

#endif
