/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests, answers and messages for the record: short ones stand in their event, all others go beside it as
 * blobs that the event names. */
#ifndef GATEWAY_BRIDGE_BODY_H
#define GATEWAY_BRIDGE_BODY_H

#include "event/event.h"
#include "gateway/channel.h"
#include "gateway/http_machine.h"
#include "util/digest.h"
#include "util/str.h"

#define BRIDGE_BODY_INLINE_MAX 512 /* bytes; docs/record-format.md says why */

struct bridge_body {
	const struct http_copy_view *view;
	struct slice text, encoding;                            /* text: of a short one */
	struct str base64;                                      /* where that is no text */
	char blob[DIGEST_HEX_SIZE], tail_blob[DIGEST_HEX_SIZE]; /* empty: none */
};

/* Sends what goes beside the event. The view is borrowed until done. */
void bridge_body_send(
	struct channel *channel, const struct http_copy_view *view, struct bridge_body *ret_body);
void bridge_body_done(struct bridge_body *body);
/* Puts what there is to tell into an event, as body of the request or message, or as that of the answer. */
void bridge_body_tell(const struct bridge_body *body, struct event *ev);
void bridge_body_tell_response(const struct bridge_body *body, struct event *ev);

#endif
