/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP exchanges as an HTTP Archive, version 1.2: what browsers' tools and others read.
 *
 * An entry for each net.http, in the order in which they began; WebSocket messages under the exchange that opened
 * theirs. What has no place in HAR stands in fields that begin with an underscore, as the format asks. */
#ifndef REPORT_HAR_H
#define REPORT_HAR_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/network_body.h"

#define HAR_ENTRIES_MAX 1000000U

struct har;

/* read: for bodies that lie beside their event, of the sandbox whose event is being added. */
struct har *har_new(network_body_fn read, void *ctx);
void har_free(struct har *har);
SCOPED_TYPE(har)

/* Others than net.http and net.ws are passed over. sandbox: named in the entry; NULL: not. */
void har_add(struct har *har, const struct event *ev, const char *sandbox);
/* The whole archive as one JSON object, without a line end. */
void har_json(struct har *har, struct str *out);

#endif
