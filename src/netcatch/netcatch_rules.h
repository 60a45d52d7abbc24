/* SPDX-License-Identifier: Apache-2.0 */
/* Catches what leaves a sandbox where the host loads no programs: by nftables rules in its network namespace. They lead
 * packets to the same sockets, whose own address is then the original destination, so there is no address translation and
 * nothing that keeps a state of connections. A SYN is copied to a socket (NFLOG) and dropped; the one that the gateway
 * sends again carries a mark, which nobody inside may set (CAP_NET_ADMIN, CAP_NET_RAW). */
#ifndef NETCATCH_NETCATCH_RULES_H
#define NETCATCH_NETCATCH_RULES_H

#include <stdbool.h>

#include "util/err.h"

/* Every byte the same, so that their order does not matter. */
#define NETCATCH_RULES_MARK 0x43434343

/* Both by a thread inside, with CAP_NET_ADMIN there. The rules last as long as the namespace. */
int netcatch_rules_set(bool with_ip6, struct err *err);
/* The socket on which the copies of SYNs arrive: see gateway/copies.h. Its owner closes it. */
int netcatch_rules_copies(struct err *err);

#endif
