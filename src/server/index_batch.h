/* SPDX-License-Identifier: Apache-2.0 */
/* What events of a record's log become in the store, gathered until there is enough for one call. */
#ifndef SERVER_INDEX_BATCH_H
#define SERVER_INDEX_BATCH_H

#include "event/event.h"
#include "server/webhooks.h"
#include "store/store.h"
#include "util/str.h"

#define INDEX_BATCH_MAX 256 /* of each kind */

/* Whose they are; borrowed until the batch is reset. */
struct index_batch_of {
	const char *account, *sandbox;
};

/* Texts are the batch's own. */
struct index_batch {
	struct store_log_row rows[INDEX_BATCH_MAX];
	struct store_event events[INDEX_BATCH_MAX];
	struct store_metric metrics[INDEX_BATCH_MAX];
	struct webhooks_event asks[INDEX_BATCH_MAX]; /* told to webhooks alone */
	size_t n_rows, n_events, n_metrics, n_asks;
	char *texts[INDEX_BATCH_MAX * 6];
	size_t n_texts;
};

struct index_batch *index_batch_new(void);
void index_batch_free(struct index_batch *batch);
SCOPED_TYPE(index_batch)
void index_batch_reset(struct index_batch *batch);
bool index_batch_is_empty(const struct index_batch *batch);
/* No room for what one more event may become. */
bool index_batch_is_full(const struct index_batch *batch);

/* The row that ev ended, as json. */
void index_batch_add_row(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice json);
void index_batch_add_event(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice line);
void index_batch_add_metric(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice line);

/* A question about a connection, or what became of it. */
void index_batch_add_ask(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice line);

/* NULL: it is not among them. */
const struct store_log_row *index_batch_find(const struct index_batch *batch, const char *exec);

/* Those that webhooks may want to hear of; how many. */
#define INDEX_BATCH_HEARD_MAX (3 * INDEX_BATCH_MAX)
size_t index_batch_heard(
	const struct index_batch *batch, struct webhooks_event events[INDEX_BATCH_HEARD_MAX]);

#endif
