/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche reindex`: the index in the store made again from records, ledger and audit journal. A server may run meanwhile. */
#ifndef SERVER_REINDEX_H
#define SERVER_REINDEX_H

#include <jansson.h>

#include "util/err.h"

/* settings, office: as server_run(). Prints what it did, as settings' "reindex" says ("text", "json", "quiet"). -EIO where not
 * all of it was done: what failed was said. */
int reindex_run(const json_t *settings, int office, struct err *err);

#endif
