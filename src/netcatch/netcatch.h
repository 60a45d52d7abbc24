/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's network namespace without a way out: every address of the world is local to it, and what is sent to one
 * ends at sockets that are made here, for the gateway. While nobody reads them nothing goes anywhere.
 *
 * All of it is held by descriptors: who made it may die, and nothing stays. What the parts mean: netcatch_wire.h.
 *
 * A thread of its own makes it while the rest of the sandbox is made: most of its time is the kernel's, which looks
 * over the programs. The thread owns everything until netcatch_wait() has returned. */
#ifndef NETCATCH_NETCATCH_H
#define NETCATCH_NETCATCH_H

#include <stdint.h>

#include "netcatch/netcatch_diag.h"
#include "util/err.h"
#include "util/scoped.h"

struct netcatch;

struct netcatch_config {
	int netns_fd;      /* of the sandbox; borrowed for the call */
	int cgroup_fd;     /* the group all of it is in; likewise */
	const char *cache; /* a file for what is asked of the kernel once (netcatch_fields.h) */
};

/* Takes the rights to administer the namespace and to load programs (CAP_SYS_ADMIN, NET_ADMIN, NET_RAW, BPF, PERFMON);
 * nothing after netcatch_wait() takes any. Until then no process is to be cloned that goes on in this program: it would
 * lack the thread. The caller owns what it returns. */
struct netcatch *netcatch_start(const struct netcatch_config *config);
/* Before anything runs in the group. 0, or why it cannot be had. */
int netcatch_wait(struct netcatch *netcatch, struct err *err);
/* NULL, or why no programs could be had and rules catch in their place (netcatch_rules.h): then there are no maps and no
 * ring, but copies. */
const char *netcatch_by_rules(const struct netcatch *netcatch);
/* NULL, or why the host does not tell whose a connection is: then `owners` is empty, and `refused` is not looked at. */
const char *netcatch_notice(const struct netcatch *netcatch);
void netcatch_free(struct netcatch *netcatch); /* at any time */
SCOPED_TYPE(netcatch)

/* For looking up afterwards whose something is; to be used by one thread, while netcatch lives. */
void netcatch_diag_init(const struct netcatch *netcatch, struct netcatch_diag *ret_diag);

/* Descriptors of it, borrowed; -1 where a host without IPv6 has none. The socket for streams is one of IPv4 there. */
enum netcatch_part {
	NETCATCH_PART_TCP,
	NETCATCH_PART_UDP4,
	NETCATCH_PART_UDP6,
	NETCATCH_PART_DNS4,
	NETCATCH_PART_DNS6,
	NETCATCH_PART_RAW4,
	NETCATCH_PART_RAW6,
	NETCATCH_PART_FLOWS,
	NETCATCH_PART_OWNERS,
	NETCATCH_PART_RING,
	NETCATCH_PART_REFUSED,
	NETCATCH_PART_COPIES, /* where rules catch */
	NETCATCH_N_PARTS
};
int netcatch_fd(const struct netcatch *netcatch, enum netcatch_part part);

/* How much could not be told so far, since there was no room for it: refusals, listeners, datagrams, and connections, whose
 * SYN may be sent again yet, and be told. */
uint64_t netcatch_lost(const struct netcatch *netcatch);

/* Forgets what a gateway that is gone had entered: flows are held again, nothing is refused before it was judged anew. */
void netcatch_reset(struct netcatch *netcatch);

/* For doctor: whether this host gives it, 0 or why not. Tried in a namespace of its own, and with a group of the caller's;
 * nothing stays. */
int netcatch_probe(struct err *err);
int netcatch_probe_rules(struct err *err);
int netcatch_probe_hooks(int cgroup_fd, struct err *err);

#endif
