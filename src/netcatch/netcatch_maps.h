/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel half and who loads it have in common beyond netcatch_wire.h. */
#ifndef NETCATCH_NETCATCH_MAPS_H
#define NETCATCH_NETCATCH_MAPS_H

/* Indices of the map `sockets`. */
enum netcatch_socket {
	NETCATCH_TCP,
	NETCATCH_HOLD, /* not where rules catch */
	NETCATCH_UDP4,
	NETCATCH_UDP6,
	NETCATCH_DNS4,
	NETCATCH_DNS6,
	NETCATCH_N_SOCKETS,
};

/* Indices of the map `lost`. */
enum netcatch_lost_kind {
	NETCATCH_LOST,   /* nobody sends it again */
	NETCATCH_UNTOLD, /* SYNs that may be sent again, and leave this number then */
	NETCATCH_N_LOST,
};

/* 10.0.0.2 and fd00::2 are the sandbox's own; its other addresses lead to the gateway, whose sockets are bound to
 * 127.255.255.53, so that no port is taken from what binds to 127.0.0.1. */
#define NETCATCH_OWN_IP4          0x0a000002
#define NETCATCH_OWN_IP6_HEAD     0xfd000000
#define NETCATCH_OWN_IP6_TAIL     0x00000002
#define NETCATCH_GATEWAY_IP4      0x7fffff35
#define NETCATCH_GATEWAY_IP6_TAIL 0x00000035
#define NETCATCH_DNS_PORT         53
#define NETCATCH_PORT             61053 /* all others but the one for held connections */

/* X(name, type, flags, bytes of a key, bytes of a value, entries). users: who last connected or sent with a socket; it
 * goes with the socket, so that nothing inside can fill it up. lost: what found no room in the ring (netcatch_lost_kind). */
#define NETCATCH_MAPS(X) \
	X(sockets, SOCKMAP, 0, 4, 8, NETCATCH_N_SOCKETS) \
	X(flows, HASH, BPF_F_NO_PREALLOC, sizeof(struct netcatch_key), 4, NETCATCH_FLOWS_MAX) \
	X(owners, HASH, BPF_F_NO_PREALLOC, sizeof(struct netcatch_key), \
		sizeof(struct netcatch_owner), NETCATCH_OWNERS_MAX) \
	X(refused, HASH, BPF_F_NO_PREALLOC, sizeof(struct netcatch_target), 4, \
		NETCATCH_REFUSED_MAX) \
	X(ring, RINGBUF, 0, 0, 0, NETCATCH_RING_BYTES) \
	X(lost, ARRAY, 0, 4, 8, NETCATCH_N_LOST) \
	X(users, SK_STORAGE, BPF_F_NO_PREALLOC, 4, sizeof(struct netcatch_owner), 0)

/* X(function, its type, its attach type) */
#define NETCATCH_PROGRAMS(X) \
	X(lookup, SK_LOOKUP, SK_LOOKUP) \
	X(hold, SOCKET_FILTER, CGROUP_INET_INGRESS) /* none: 0 */ \
	X(connect4, CGROUP_SOCK_ADDR, CGROUP_INET4_CONNECT) \
	X(connect6, CGROUP_SOCK_ADDR, CGROUP_INET6_CONNECT) \
	X(egress, CGROUP_SKB, CGROUP_INET_EGRESS) \
	X(listen, SOCK_OPS, CGROUP_SOCK_OPS)

/* Numbers that are filled in when a program is loaded: where fields lie in the kernel's structures. */
#define NETCATCH_NUMBERS(X) \
	X(field_known)        /* 1, or 0: none of the others */ \
	X(field_task_pid)     /* task_struct.thread_pid */ \
	X(field_task_tgid)    /* task_struct.tgid */ \
	X(field_task_leader)  /* task_struct.group_leader */ \
	X(field_task_comm)    /* task_struct.comm */ \
	X(field_task_cgroups) /* task_struct.cgroups */ \
	X(field_cgroups_own)  /* css_set.dfl_cgrp */ \
	X(field_cgroup_kn)    /* cgroup.kn */ \
	X(field_kn_id)        /* kernfs_node.id */ \
	X(field_pid_level)    /* pid.level */ \
	X(field_pid_numbers)  /* pid.numbers[0].nr */ \
	X(field_upid_size)    /* of struct upid */

#endif
