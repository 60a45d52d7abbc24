/* SPDX-License-Identifier: Apache-2.0 */
/* Who is behind a datagram: the kernel half notes it by the flow's key. An entry is left there while its socket may
 * send more under it, and deleted a minute after it was asked for last.
 *
 * Where it has noted nothing (it had no room, or is not there) the supervisor is asked, who looks into the sandbox: that
 * is waited for, some 100 us, or 200 ms at worst. */
#ifndef GATEWAY_OWNERS_H
#define GATEWAY_OWNERS_H

#include "netcatch/netcatch_wire.h"
#include "util/scoped.h"

struct gateway;
struct owners;

struct owners *owners_new(struct gateway *gw);
void owners_free(struct owners *owners);
SCOPED_TYPE(owners)

/* All zero where it is not known. */
void owners_find(
	struct owners *owners, const struct netcatch_key *key, struct netcatch_owner *ret_owner);

/* Of a connection whose record names no process: what is known of it is added. */
void owners_add(
	struct owners *owners, const struct netcatch_key *key, struct netcatch_owner *owner);

#endif
