/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in a sandbox, as server-sent events, from any point of its record on: history and what is to come are read from
 * the same files, so there is no seam between them, and a client that reads slowly is read for slowly and loses nothing.
 *
 *   event: row    an exec-log row;           id: r<its place in the log, from 1>
 *   event: trace  any event, with events=true (rows, too); all ids are then s<seq>
 *   event: end    the record has ended; so has the stream. Without follow, what there is of it has ended
 *
 * All on the loop. */
#ifndef SERVER_WATCH_STREAM_H
#define SERVER_WATCH_STREAM_H

#include "server/call.h"
#include "server/watch_cursor.h"
#include "util/id.h"

struct watch_stream_ask {
	struct watch_cursor *cursor;
	char sandbox[ID_SIZE];
	bool has_events, follows;
	struct watch_from from; /* what the client has already */
};

int watch_stream_hub_new(struct server *server, struct watch_stream_hub **ret_hub, struct err *err);
void watch_stream_hub_free(struct watch_stream_hub *hub);
SCOPED_TYPE(watch_stream_hub)

/* call->then: call->state is a struct watch_stream_ask, taken over. */
void watch_stream_run(struct call *call);

#endif
