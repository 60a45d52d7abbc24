/* SPDX-License-Identifier: Apache-2.0 */
/* How views name where something went. */
#ifndef VIEW_NETWORK_PLACE_H
#define VIEW_NETWORK_PLACE_H

#include "event/event.h"
#include "util/str.h"

/* Whether the event tells of something that goes out, or was to. */
static inline bool network_place_is_outward(const struct event *ev)
{
	if (ev->kind == EVENT_NET_FLOW)
		return !slice_is(ev->direction, "in");
	return ev->kind == EVENT_NET_CONNECT || ev->kind == EVENT_NET_UDP ||
	       ev->kind == EVENT_NET_HTTP || ev->kind == EVENT_NET_WS ||
	       ev->kind == EVENT_NET_REFUSED;
}

/* The name that led there, the name that was asked for, or the address; empty where none is known. */
static inline struct slice network_place_host(const struct event *ev)
{
	if (ev->host.len)
		return ev->host;
	if (ev->kind == EVENT_NET_DNS || (ev->kind == EVENT_NET_REFUSED && ev->name.len))
		return ev->name;
	return ev->address;
}

/* "packages.example.org:443", "203.0.113.9:80", "[fd00::1]:80"; without a port (0) the host alone. As it is, not escaped. */
void network_place_add(struct str *out, struct slice host, int64_t port);
/* " (DELETE /x)" of a request that was refused although its host is not: one whose address is a real one. */
void network_place_add_request(struct str *out, const struct event *ev);
/* Why it was refused, in a few words: the rule; the reason, a whole sentence, where there is none. */
struct slice network_place_why(struct slice rule, struct slice reason);

#endif
