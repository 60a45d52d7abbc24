/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events (WHATWG HTML, 9.2), read as they come. Pure: bytes in, events out. */
#ifndef PROTO_SSE_H
#define PROTO_SSE_H

#include <stdbool.h>

#include "util/str.h"

#define SSE_EVENT_MAX (32u << 20) /* bytes of one, all its fields together */

/* An event; slices are good until the handler returns. */
struct sse_event {
	struct slice name; /* "message" where the stream gives none */
	struct slice data; /* its lines joined by line feeds */
	struct slice id;   /* of this event or the last before it that had one; empty: none yet */
};

/* Zero-initialise; sse_done() at the end. */
struct sse {
	struct str line, name, data, id;
	bool has_data, was_cr, is_begun;
	/* Called for each event; negative ends the reading. */
	int (*on_event)(void *ctx, const struct sse_event *event);
	void *ctx;
};

/* Takes the next bytes. 0; -EMSGSIZE: an event is longer than SSE_EVENT_MAX; or what the handler said. An event whose end has
 * not come is none. */
int sse_read(struct sse *sse, struct slice in);
void sse_done(struct sse *sse);

#endif
