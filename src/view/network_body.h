/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that were too long for their event, read back from where they lie. */
#ifndef VIEW_NETWORK_BODY_H
#define VIEW_NETWORK_BODY_H

#include "event/event.h"
#include "util/str.h"

#define NETWORK_BODY_MAX (64U << 20) /* of a blob: for those who read them */

/* Adds the bytes of a blob to out: 0, or a negative errno. */
typedef int (*network_body_fn)(void *ctx, struct slice sha256, struct str *out);

/* An event with its bodies; zero-initialise, the same one can be used again. */
struct network_body {
	struct event event;
	struct str texts[2];
};

/* The event itself where it names no blob, or none that can be read; else a copy with what lies there as body, in base64
 * where it is no text, good until the next call. body_truncated stays where that is not known to be all. */
const struct event *network_body_fill(
	struct network_body *body, const struct event *ev, network_body_fn read, void *ctx);
void network_body_done(struct network_body *body);

#endif
