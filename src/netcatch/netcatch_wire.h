/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel half of a sandbox's network and the gateway tell each other: keys and values of the maps,
 * records in the ring. Both are of the same build, so the layout may change freely.
 *
 * Addresses are 16 bytes in network order, IPv4 as ::ffff:a.b.c.d; ports are in host order. A key must have no
 * byte left to chance: zero it first.
 *
 * A TCP connection inside:
 *   connect() -> its hook refuses what is in `refused` (EACCES, record REFUSED) or notes who it was
 *   SYN       -> noted in `owners`; not in `flows`: the hold listener's filter puts it into the ring (record SYN,
 *                with its owner) and drops it; the client's kernel waits and sends it again after 1, 3, 7 s
 *   gateway   -> puts NETCATCH_PASS into `flows` and sends the SYN again through a raw socket, or a reset or an ICMP
 *                message in answer to it
 *   SYN       -> pass: to the listener, whose accepted socket has the original destination as its own address
 * A datagram inside goes to a UDP socket (port 53: a DNS socket) with its owner in `owners`.
 *
 * Where rules catch in place of the kernel half (netcatch_rules.h) SYNs arrive by another socket, the raw sockets' mark
 * stands for NETCATCH_PASS, and there are no maps. Owners that are not known are looked up (struct netcatch_found). */
#ifndef NETCATCH_NETCATCH_WIRE_H
#define NETCATCH_NETCATCH_WIRE_H

#include <linux/types.h>

#define NETCATCH_FLOWS_MAX   4096
#define NETCATCH_OWNERS_MAX  4096
#define NETCATCH_REFUSED_MAX 1024
#define NETCATCH_RING_BYTES  (256u << 10)
#define NETCATCH_PACKET_MAX  128 /* a SYN's headers: longer ones are dropped unseen */
#define NETCATCH_COMM_SIZE   16

/* One flow as the client sees it: src is what is inside. Key of `flows` (TCP) and `owners` (TCP and UDP). */
struct netcatch_key {
	__u8 dst[16], src[16];
	__u16 dport, sport;
	__u32 protocol; /* IPPROTO_TCP, IPPROTO_UDP */
};

/* Values of `flows`. The gateway deletes a PASS once it has accepted the connection or given it up. */
enum netcatch_verdict {
	NETCATCH_PASS = 1,
};

/* Who opened it. Value of `owners`: whoever reads one for a flow deletes it when that flow is over, and
 * may delete all that belong to no flow it knows of when the map is full. Of a SYN record the entry is gone
 * already. */
struct netcatch_owner {
	__u64 cgroup;    /* id of the exec's group; 0: not known */
	__u64 cookie;    /* of the socket */
	__u32 host_pid;  /* the process as the host numbers it */
	__u32 pid, task; /* process and thread as the sandbox numbers them; 0: not known */
	__u32 is_untold; /* its SYN found no room in the ring so far */
	char comm[NETCATCH_COMM_SIZE];
};

/* What whoever looks into the sandbox answers when it is sent a key. */
struct netcatch_found {
	struct netcatch_key key;
	struct netcatch_owner owner; /* all zero where it is not known */
};

/* Key of `refused`, the value is a __u32 that is not 0: connect() and sendto() there fail at once with EACCES.
 * For speed and a clear error only; what must not be reached is never dialled. */
struct netcatch_target {
	__u8 dst[16];
	__u16 dport;    /* 0: any */
	__u16 protocol; /* IPPROTO_TCP, IPPROTO_UDP; 0: any */
};

enum netcatch_kind {
	NETCATCH_SYN = 1,     /* held; the packet is there from its IP header on */
	NETCATCH_REFUSED = 2, /* a hook said EACCES: src and sport may be 0 */
	NETCATCH_LISTEN = 3,  /* listen() inside: src and sport are what it listens on */
};

/* In the ring. */
struct netcatch_record {
	__u32 kind, len; /* len bytes of packet */
	__u64 ns;        /* CLOCK_MONOTONIC */
	struct netcatch_key key;
	struct netcatch_owner owner;
	__u8 packet[NETCATCH_PACKET_MAX];
};

_Static_assert(sizeof(struct netcatch_key) == 40, "no holes in a key");
_Static_assert(sizeof(struct netcatch_owner) == 48, "no holes in a value");
_Static_assert(sizeof(struct netcatch_target) == 20, "no holes in a key");
_Static_assert(sizeof(struct netcatch_record) == 232, "whole words in a record");

#endif
