/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of one running gateway share. One thread. */
#ifndef GATEWAY_GATEWAY_INTERNAL_H
#define GATEWAY_GATEWAY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/channel.h"
#include "gateway/config.h"
#include "gateway/flow_head.h"
#include "gateway/inside.h"
#include "gateway/names.h"
#include "gateway/policy.h"
#include "gateway/poller.h"

#define GATEWAY_CHUNK (64u << 10) /* read from a socket at once */

struct gateway_proxy {
	struct str
		host; /* a name, or a numeric address; empty: none, upstream is dialled directly */
	uint16_t port;
};

struct gateway {
	struct config config;
	bool by_rules; /* catch, not programs: there are no maps (netcatch_wire.h) */
	struct gateway_proxy proxy;
	struct poller_io control_io;
	struct poller *poller;
	struct channel *channel;
	struct policy *policy;
	int route_fd; /* own_address.h */
	struct names *names;
	struct inside *inside;
	struct resolver *resolver;
	struct intake *intake;
	struct bridges *bridges;
	struct refused *refused;
	struct dns_proxy *dns;
	struct dns_streams *dns_streams;
	struct dns_burst *bursts;
	struct str flushes; /* ids that are to be answered when nothing is left to do */
	struct poller_timer flush_timer;
	bool flush_waits;   /* for questions that are under way */
	size_t n_questions; /* of names, asked outside and not answered yet */
	struct poller_timer burst_timer;
	struct udp_flows *udp;
	struct owners *owners;
	struct published *published;
	struct visitors *visitors;
	struct asks *asks;
	struct plane *plane;           /* NULL: this sandbox has none */
	int64_t last_flow;             /* number of the newest */
	struct secrets *secrets;       /* as they were at the start; NULL: none */
	size_t body_spare;             /* bytes that copies of long bodies may take */
	struct tls_client *tls_client; /* NULL: not made yet */
	struct ca *ca;
	size_t n_flows; /* TCP flows that hold or may soon hold descriptors */
	struct limits *limits;
	char chunk[GATEWAY_CHUNK]; /* for bytes that are passed on at once */
};

/* A question went outside, or is over. */
void gateway_count_question(struct gateway *gw, bool is_over);

/* A new flow's number. */
int64_t gateway_flow_number(struct gateway *gw);

#endif
