/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the timeline that tell of the network. */
#ifndef VIEW_TIMELINE_NET_H
#define VIEW_TIMELINE_NET_H

#include "event/event.h"
#include "util/jsonw.h"
#include "util/str.h"
#include "view/intern.h"

/* What such a row knows beside its words; texts are interned. */
struct timeline_net {
	struct slice host, address, protocol, rule, reason, name, answer, actor;
	int64_t port; /* 0: none */
};

/* "connect", "failed", "listen", ...; NULL where the event makes no row. */
const char *timeline_net_verb(const struct event *ev);
/* What stands in the row, as text that is not escaped yet: "a.test:443". */
void timeline_net_what(const struct event *ev, struct str *out);
struct timeline_net timeline_net_of(struct intern *intern, const struct event *ev);
/* Members of the row's object. */
void timeline_net_json(struct jsonw *j, const struct timeline_net *net);

#endif
