/* SPDX-License-Identifier: Apache-2.0 */
/* One question for a name, from its bytes to its answer.
 *
 *   allowed           asked upstream; what comes back is written anew, without the keys that hide server names
 *   mapped, to ask    a synthetic address stands for the name: nothing is asked outside
 *   refused           A: a synthetic address likewise, whose connections are answered or refused with a reason; AAAA: no
 *                     such address; any other type: REFUSED. Nothing is asked outside.
 *
 * Types that are passed on: A, AAAA, CNAME, and those that programs cannot do without (MX and TXT for mail and for
 * proofs of ownership, SRV, NS, SOA, PTR, HTTPS and SVCB, CAA). All others are refused: zone transfers, ANY, private
 * ones. Where SRV asks for a service of a host (_http._tcp.HOST), the rules are asked about the host. Answers of type AAAA are emptied where this host has no way to any of the addresses, so that no program
 * tries them first. */
#ifndef GATEWAY_DNS_WORK_H
#define GATEWAY_DNS_WORK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/flow_head.h"
#include "util/slice.h"

struct gateway;
struct dns_work;

/* Who asks; copied. */
struct dns_origin {
	const char *protocol; /* "udp", "tcp" */
	uint8_t server[16];   /* whom the program asked */
	struct netcatch_owner owner;
	bool is_stream;
	/* Called once, at once or later: message is empty where no answer is due. */
	void (*reply)(void *ctx, struct slice message);
	void *ctx;
};

/* NULL: it was replied to already. */
struct dns_work *dns_work_start(
	struct gateway *gw, struct slice message, const struct dns_origin *origin);
void dns_work_cancel(struct dns_work *work); /* no reply then; NULL is fine */

#endif
