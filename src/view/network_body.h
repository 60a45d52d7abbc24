/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of an exchange or a message, wherever they are kept: in their event, or beside it as blobs that it names. */
#ifndef VIEW_NETWORK_BODY_H
#define VIEW_NETWORK_BODY_H

#include "event/event.h"
#include "util/str.h"

#define NETWORK_BODY_MAX (64U << 20) /* of a blob: for those who read them */

/* Adds the bytes of a blob to out: 0, or a negative errno (-EBADMSG: they are others than the name says). */
typedef int (*network_body_fn)(void *ctx, struct slice sha256, struct str *out);

enum network_body_side {
	NETWORK_BODY_SENT, /* of the request, or of a message either way */
	NETWORK_BODY_GOT,  /* of the answer */
	NETWORK_BODY_SIDES,
};

/* Where events have what belongs to one side. */
struct network_body_fields {
	enum event_field body, encoding, truncated, sha256, blob, tail_blob;
};
extern const struct network_body_fields network_body_fields[NETWORK_BODY_SIDES];

/* One body as it is shown: in base64 where it is no text. */
struct network_body {
	bool has_text, has_tail; /* there is some */
	struct slice text, tail; /* tail: the last bytes of one that was cut */
	struct slice encoding;
	bool truncated;
	bool gone;    /* the event names it, but it is not there (any more) */
	bool changed; /* what is there is not what the event names */
};

/* Both; zero-initialise, the same ones can be used again. */
struct network_bodies {
	struct network_body sides[NETWORK_BODY_SIDES];
	struct str texts[NETWORK_BODY_SIDES][2];
};

/* Good until the next call, and as long as the event. read NULL: blobs count as gone. */
void network_body_read(
	struct network_bodies *bodies, const struct event *ev, network_body_fn read, void *ctx);
void network_body_done(struct network_bodies *bodies);
/* Whether there was a body to keep, here or beside. */
bool network_body_is_told(const struct event *ev, enum network_body_side side);

#endif
