/* SPDX-License-Identifier: Apache-2.0 */
/* Brings what records say into the store: exec-log rows, lifecycle events, figures, states. The record is the truth, the
 * store its index: rows that are there already are left out, so reading one twice does no harm. Sandboxes that another
 * replica made are found by looking at the folder of records. */
#ifndef SERVER_INDEXER_H
#define SERVER_INDEXER_H

#include "server/server.h"
#include "util/err.h"
#include "util/id.h"
#include "util/str.h"

#define INDEXER_HELD_MS (60 * 1000) /* so long a question waits for its answer */

int indexer_new(struct server *server, struct indexer **ret_indexer, struct err *err);
void indexer_free(struct indexer *indexer);
SCOPED_TYPE(indexer)

/* Reads what is new in a sandbox's log. row (may be NULL) gets the exec-log row of exec where it was among that. 1 where row
 * was filled, also where the store failed, which has it a bit later then; else 0. -ENOENT: there is no such record, or it is not
 * ours. From a worker. */
int indexer_catch_up(struct indexer *indexer, const char *sandbox, const char *exec,
	struct str *row, struct err *err);

/* Lets go of a record: what is open of it is closed. It is opened, and read from its start, when it is asked for again. */
void indexer_drop(struct indexer *indexer, const char *sandbox);

/* Sandboxes of an account in which a connection may be held, by what their logs say; their supervisors know. Returns how many. From
 * any thread. */
size_t indexer_holding(
	struct indexer *indexer, const char *account, char (*ret_ids)[ID_SIZE], size_t max);

#endif
