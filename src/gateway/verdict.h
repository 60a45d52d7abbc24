/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules say of a destination as the program inside sees it: the address may be one that a name led to, or a
 * synthetic one that stands for a name. */
#ifndef GATEWAY_VERDICT_H
#define GATEWAY_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/flow_head.h"
#include "gateway/policy.h"

struct gateway;

#define VERDICT_CHANGED "the rules in force now refuse it"

struct verdict {
	const char
		*host; /* the name that decided; NULL for a raw address; borrowed from the names */
	struct policy_answer answer;
	/* Where to go, when it is allowed: an address, or host where that has to be looked up first. */
	bool has_address;
	uint8_t address[16];
	uint16_t port;
};

/* For the address and port that a program inside named. */
void verdict_find(struct gateway *gw, const uint8_t address[16], uint16_t port,
	const char *protocol, struct verdict *ret);

/* For a place as it really is: host and address may be NULL, but not both. */
void verdict_of(struct gateway *gw, const char *host, const uint8_t address[16], uint16_t port,
	const char *protocol, struct policy_answer *ret);

/* Whether a flow under this name may stay, by the rules in force now. address: where it leads; NULL: that is not known
 * yet. What a person is to be asked about stays where one was. */
bool verdict_still_holds(struct gateway *gw, const struct flow_head *head, const uint8_t *address,
	struct policy_answer *ret_answer);

/* net.refused, or with answer->shadow that it was let through. stage: "dns", "connect", "tls", "http". */
void verdict_tell(struct gateway *gw, const struct flow_head *head,
	const struct policy_answer *answer, const char *stage);

#endif
