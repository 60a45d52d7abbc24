/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps web pages of others out, whatever key or cookie a browser sends along: the names that a server answers to (a page
 * can have its own name lead here, and is then of the same origin for the browser), and where a request was made, as far as
 * the browser tells. Programs tell nothing and pass. */
#ifndef SERVER_ORIGIN_H
#define SERVER_ORIGIN_H

#include <jansson.h>

#include "server/http_conn.h"
#include "util/err.h"
#include "util/scoped.h"

struct origin; /* never changes once made */

/* config: "names" is a list of NAME, NAME:PORT or, behind a proxy that changes the Host, http[s]://NAME[:PORT]; may be NULL.
 * -EINVAL with a sentence. */
int origin_new(const json_t *config, struct origin **ret_origin, struct err *err);
void origin_free(struct origin *origin);
SCOPED_TYPE(origin)

/* Fills in plan->refusal where the request is not for this server, or from a page of another one, and plan->is_strict. */
void origin_check(const struct origin *origin, const struct http1_head *head,
	const struct http_peer *peer, struct http_plan *plan);

#endif
