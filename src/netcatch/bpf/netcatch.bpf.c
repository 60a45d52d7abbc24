/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kernel half of a sandbox's network: catches every connection and datagram that leaves a socket inside, and
 * notes whose it was. Decides nothing but what the maps say. Kernel documentation: bpf/prog_sk_lookup.rst.
 *
 * Loaded for each sandbox, so it is short, and nothing here must be fitted to the kernel's types: where fields of
 * its structures lie is filled in as numbers (`field_...`), as are the descriptors of the maps. tools/bpf-embed
 * makes tables of instructions and of these places from the object; netcatch_load.c fills them in. No data
 * sections, no functions that are not inlined. */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "netcatch/netcatch_maps.h"
#include "netcatch/netcatch_wire.h"

#define AF_INET                                 2
#define EACCES                                  13
#define KEEP_ALL                                0xffffffff /* of a socket filter: the whole packet */
#define DROP_IT                                 0
#define LET_GO                                  1 /* of a cgroup hook */
#define REFUSE_IT                               0

#define IP4_LEN                                 20
#define IP4_PROTOCOL                            9
#define IP4_SOURCE                              12
#define IP4_TARGET                              16
#define IP6_LEN                                 40
#define IP6_PROTOCOL                            6
#define IP6_SOURCE                              8
#define IP6_TARGET                              24
#define UDP_LEN                                 8
#define TCP_LEN                                 16 /* up to its flags and beyond, in whole words */
#define TCP_OFFSET                              12
#define TCP_FLAGS                               13
#define TCP_SYN                                 0x02
#define TCP_ACK                                 0x10

#define MAP(name, type, flags, key, value, max) extern const char name[];
NETCATCH_MAPS(MAP)
#undef MAP

/* Weak: so that the compiler does not take it for an address, which is never 0. */
#define NUMBER(name) extern const char name[] __weak;
NETCATCH_NUMBERS(NUMBER)
#undef NUMBER
#define VALUE(name)  ((__u64)(name))
#define MAP_OF(name) ((void *)(name))

/* One load of four bytes each: the context's fields are not to be read in other widths. */
#define WORD(x) (*(volatile __u32 *)&(x))

/* The words of an address, from an array of a context or from bytes of a packet. */
#define SET_IP6(to, from) \
	do { \
		__u32 *w_ = (__u32 *)(to); \
		w_[0] = WORD((from)[0]); \
		w_[1] = WORD((from)[1]); \
		w_[2] = WORD((from)[2]); \
		w_[3] = WORD((from)[3]); \
	} while (0)

static __always_inline void set_ip4(__u8 to[16], __u32 address)
{
	__u32 *words = (__u32 *)to;

	words[0] = words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = address;
}

/* 1 where x is 0, else 0. Without a branch, and the compiler must not make one: the kernel's verifier, whose time is
 * the start of a sandbox's, goes through all that follows once more for each. */
static __always_inline __u64 is_zero(__u32 x)
{
	__u64 wide = x;

	asm volatile("" : "+r"(wide));
	return (wide - 1) >> 63;
}

/* The sandbox's own: loopback (which 0.0.0.0 and :: mean, too) and what its interface has. */
static __always_inline __u64 is_own4(__u32 address)
{
	return is_zero((__u8)address ^ 127) | is_zero(address) |
	       is_zero(address ^ bpf_htonl(NETCATCH_OWN_IP4));
}

static __always_inline __u64 is_ip4(const __u32 *words)
{
	return is_zero(words[0] | words[1] | (words[2] ^ bpf_htonl(0xffff)));
}

static __always_inline __u64 is_own6(const __u32 *words)
{
	__u32 tail = bpf_ntohl(words[3]);

	return is_zero(words[0] | words[1] | words[2] | tail >> 1) |
	       is_zero((words[0] ^ bpf_htonl(NETCATCH_OWN_IP6_HEAD)) | words[1] | words[2] |
		       (tail ^ NETCATCH_OWN_IP6_TAIL)) |
	       (is_ip4(words) & is_own4(words[3]));
}

/* To many at once: nobody out there gets it. */
static __always_inline __u64 is_group(const struct netcatch_key *key)
{
	const __u32 *words = (const __u32 *)key->dst;

	return is_zero((__u8)words[0] ^ 0xff) |
	       (is_ip4(words) & (is_zero((words[3] & 0xf0) ^ 0xe0) | is_zero(~words[3])));
}

/* ---- where what arrives goes ---- */

static __always_inline __u32 choose_tcp(const struct netcatch_key *key)
{
	if (!bpf_map_lookup_elem(MAP_OF(flows), key))
		return NETCATCH_HOLD;
	bpf_map_delete_elem(MAP_OF(owners), key);
	return NETCATCH_TCP;
}

/* Ours are bound to an address of the loopback network, where nothing inside has business with them. */
static __always_inline int leave_alone(__u32 address)
{
	return address == bpf_htonl(NETCATCH_GATEWAY_IP4) ? SK_DROP : SK_PASS;
}

SEC("sk_lookup")
int netcatch_lookup(struct bpf_sk_lookup *ctx)
{
	__u32 i = NETCATCH_UDP4;
	struct netcatch_key key;
	struct bpf_sock *sk;
	long r;

	key.protocol = ctx->protocol;
	key.dport = (__u16)ctx->local_port;
	key.sport = bpf_ntohs(ctx->remote_port);
	if (ctx->family != AF_INET) { /* first: see netcatch_egress() */
		SET_IP6(key.dst, ctx->local_ip6);
		SET_IP6(key.src, ctx->remote_ip6);
		if (is_own6((const __u32 *)key.dst))
			return SK_PASS;
		i = NETCATCH_UDP6;
	} else {
		__u32 address = ctx->local_ip4;

		set_ip4(key.dst, address);
		set_ip4(key.src, ctx->remote_ip4);
		if (is_own4(address))
			return leave_alone(address);
	}
	if (key.protocol == IPPROTO_TCP)
		i = choose_tcp(&key);
	else if (key.dport == NETCATCH_DNS_PORT)
		i += NETCATCH_DNS4 - NETCATCH_UDP4;
	sk = bpf_map_lookup_elem(MAP_OF(sockets), &i);
	if (!sk)
		return SK_DROP;
	r = bpf_sk_assign(ctx, sk, 0);
	bpf_sk_release(sk);
	return r ? SK_DROP : SK_PASS;
}

/* ---- the hold listener's filter ---- */

/* Reads the ends of a SYN. Its own headers only: what hides them behind others is no SYN to us. */
static __always_inline bool read_ends(
	struct __sk_buff *skb, struct netcatch_key *key, __u32 *ret_head)
{
	__u32 ip[IP6_LEN / 4];
	const __u8 *bytes = (const __u8 *)ip;

	if (bpf_skb_load_bytes_relative(skb, 0, ip, IP4_LEN, BPF_HDR_START_NET))
		return false;
	if (bytes[0] >> 4 != 4) { /* first: see netcatch_egress() */
		if (bpf_skb_load_bytes_relative(skb, 0, ip, IP6_LEN, BPF_HDR_START_NET))
			return false;
		*ret_head = IP6_LEN;
		SET_IP6(key->src, ip + IP6_SOURCE / 4);
		SET_IP6(key->dst, ip + IP6_TARGET / 4);
		return bytes[IP6_PROTOCOL] == IPPROTO_TCP;
	}
	*ret_head = (bytes[0] & 15) * 4;
	set_ip4(key->src, ip[IP4_SOURCE / 4]);
	set_ip4(key->dst, ip[IP4_TARGET / 4]);
	return bytes[IP4_PROTOCOL] == IPPROTO_TCP;
}

static __always_inline void count(__u32 kind, __u64 n)
{
	__u64 *counter = bpf_map_lookup_elem(MAP_OF(lost), &kind);

	if (counter)
		__sync_fetch_and_add(counter, n);
}

/* A SYN that is not told now: each connection is counted once, however often its SYN is sent, until it is told. */
static __always_inline void count_untold(const struct netcatch_key *key)
{
	struct netcatch_owner *owner = bpf_map_lookup_elem(MAP_OF(owners), key);

	if (!owner) {
		count(NETCATCH_LOST, 1);
	} else if (!owner->is_untold) {
		owner->is_untold = 1;
		count(NETCATCH_UNTOLD, 1);
	}
}

static __always_inline void move_owner(
	struct netcatch_record *record, const struct netcatch_key *key)
{
	struct netcatch_owner *owner = bpf_map_lookup_elem(MAP_OF(owners), key);

	if (owner) {
		record->owner = *owner;
		if (owner->is_untold)
			count(NETCATCH_UNTOLD, -1);
		bpf_map_delete_elem(MAP_OF(owners), key);
	} else {
		__builtin_memset(&record->owner, 0, sizeof(record->owner));
	}
}

/* Hands a SYN to the gateway and drops it. Anything else goes on, and the kernel answers it with a reset. */
SEC("socket")
int netcatch_hold(struct __sk_buff *skb)
{
	struct netcatch_record *record;
	struct netcatch_key key;
	__u32 head, len;
	__u8 tcp[TCP_LEN];

	if (!read_ends(skb, &key, &head))
		return DROP_IT;
	if (bpf_skb_load_bytes_relative(skb, head, tcp, TCP_LEN, BPF_HDR_START_NET))
		return DROP_IT;
	if ((tcp[TCP_FLAGS] & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return KEEP_ALL;
	key.sport = bpf_ntohs(*(const __u16 *)tcp);
	key.dport = bpf_ntohs(*(const __u16 *)(tcp + 2));
	key.protocol = IPPROTO_TCP;
	len = head + (tcp[TCP_OFFSET] >> 4) * 4;
	record = NULL;
	if (len <= NETCATCH_PACKET_MAX)
		record = bpf_ringbuf_reserve(MAP_OF(ring), sizeof(*record), 0);
	if (!record) {
		count_untold(&key);
		return DROP_IT; /* it will be sent again */
	}
	/* Changes nothing, but the verifier of 6.1 sees that it is at least 1. */
	len = ((len - 1) & (NETCATCH_PACKET_MAX - 1)) + 1;
	record->kind = NETCATCH_SYN;
	record->len = len;
	record->ns = bpf_ktime_get_ns();
	record->key = key;
	move_owner(record, &key);
	if (bpf_skb_load_bytes_relative(skb, 0, record->packet, len, BPF_HDR_START_NET))
		bpf_ringbuf_discard(record, 0);
	else
		bpf_ringbuf_submit(record, 0);
	return DROP_IT;
}

/* ---- who it was ---- */

#define READ(to, address) bpf_probe_read_kernel(&(to), sizeof(to), (void *)(address))

/* The number of a struct pid in the namespace it was made in; 0 where that is the host's only. */
static __always_inline __u32 number_of(__u64 task)
{
	__u32 level = 0, number = 0;
	__u64 pid = 0;

	READ(pid, task + VALUE(field_task_pid));
	READ(level, pid + VALUE(field_pid_level));
	READ(number, pid + VALUE(field_pid_numbers) + level * VALUE(field_upid_size));
	return number * (__u32)(1 - is_zero(level));
}

/* All of an owner but its group and its socket. */
static __always_inline void set_who(struct netcatch_owner *owner)
{
	__u64 task = bpf_get_current_task(), leader = 0;

	if (!VALUE(field_known))
		return;
	READ(leader, task + VALUE(field_task_leader));
	READ(owner->host_pid, task + VALUE(field_task_tgid));
	READ(owner->comm, task + VALUE(field_task_comm));
	owner->task = number_of(task);
	owner->pid = number_of(leader);
}

static __always_inline bool is_refused(const struct netcatch_key *key)
{
	struct netcatch_target target;

	if (is_group(key))
		return true;
	SET_IP6(target.dst, (const __u32 *)key->dst);
	target.dport = 0;
	target.protocol = 0;
	if (bpf_map_lookup_elem(MAP_OF(refused), &target))
		return true;
	target.dport = key->dport;
	target.protocol = (__u16)key->protocol;
	return bpf_map_lookup_elem(MAP_OF(refused), &target);
}

static __always_inline void tell_refused(
	const struct netcatch_key *key, const struct netcatch_owner *owner)
{
	struct netcatch_record *record = bpf_ringbuf_reserve(MAP_OF(ring), sizeof(*record), 0);

	if (!record) {
		count(NETCATCH_LOST, 1);
		return;
	}
	record->kind = NETCATCH_REFUSED;
	record->len = 0;
	record->ns = bpf_ktime_get_ns();
	record->key = *key;
	record->owner = *owner;
	bpf_ringbuf_submit(record, 0);
}

/* The destination is in key; its source may not be known yet. */
static __always_inline int look_at(struct bpf_sock_addr *ctx, struct netcatch_key *key)
{
	struct netcatch_owner *owner;
	struct bpf_sock *sk = ctx->sk;

	if (!sk)
		return LET_GO;
	owner = bpf_sk_storage_get(MAP_OF(users), sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!owner)
		return LET_GO;
	owner->cgroup = bpf_get_current_cgroup_id();
	owner->cookie = bpf_get_socket_cookie(ctx);
	set_who(owner);
	key->dport = bpf_ntohs((__u16)ctx->user_port);
	key->protocol = ctx->protocol;
	if (!is_refused(key))
		return LET_GO;
	tell_refused(key, owner);
	bpf_set_retval(-EACCES);
	return REFUSE_IT;
}

SEC("cgroup/connect4")
int netcatch_connect4(struct bpf_sock_addr *ctx)
{
	struct netcatch_key key = {};
	__u32 address = ctx->user_ip4;

	if (is_own4(address))
		return LET_GO;
	set_ip4(key.dst, address);
	return look_at(ctx, &key);
}

SEC("cgroup/connect6")
int netcatch_connect6(struct bpf_sock_addr *ctx)
{
	struct netcatch_key key = {};

	SET_IP6(key.dst, ctx->user_ip6);
	if (is_own6((const __u32 *)key.dst))
		return LET_GO;
	return look_at(ctx, &key);
}

/* ---- what leaves a socket: only here both its ends are known ---- */

/* A datagram is sent by who runs now; a SYN may be sent again by nobody, so its owner is who connected. */
static __always_inline void note(
	struct __sk_buff *skb, struct netcatch_key *key, struct netcatch_owner *owner)
{
	struct bpf_sock *sk = skb->sk;
	struct netcatch_owner *user = NULL;

	if (key->protocol == IPPROTO_UDP) {
		set_who(owner);
	} else if (sk) {
		sk = bpf_sk_fullsock(sk);
		if (sk)
			user = bpf_sk_storage_get(MAP_OF(users), sk, NULL, 0);
		if (user)
			*owner = *user;
	}
	owner->cgroup = bpf_skb_cgroup_id(skb);
	owner->cookie = bpf_get_socket_cookie(skb);
}

static __always_inline int look_at_ends(struct __sk_buff *skb, struct netcatch_key *key)
{
	struct netcatch_owner owner = {};
	struct netcatch_owner *known = bpf_map_lookup_elem(MAP_OF(owners), key);

	if (known && (key->protocol == IPPROTO_UDP || known->cookie == bpf_get_socket_cookie(skb)))
		return LET_GO;
	/* Of a connection from the same port that was given up before it could be told. */
	if (known && known->is_untold) {
		count(NETCATCH_UNTOLD, -1);
		count(NETCATCH_LOST, 1);
	}
	note(skb, key, &owner);
	if (key->protocol == IPPROTO_UDP && is_refused(key)) {
		tell_refused(key, &owner);
		return REFUSE_IT;
	}
	bpf_map_update_elem(MAP_OF(owners), key, &owner, BPF_ANY);
	return LET_GO;
}

/* The ports, where this is a datagram or the first packet of a connection: its headers, for other protocols too. */
static __always_inline bool read_ports(struct __sk_buff *skb, __u32 at, struct netcatch_key *key)
{
	__u8 l4[TCP_LEN] = {};
	__u64 is_udp = is_zero(key->protocol ^ IPPROTO_UDP);

	if (bpf_skb_load_bytes(skb, at, l4, sizeof(l4)) && bpf_skb_load_bytes(skb, at, l4, UDP_LEN))
		return false;
	key->sport = bpf_ntohs(*(const __u16 *)l4);
	key->dport = bpf_ntohs(*(const __u16 *)(l4 + 2));
	return is_udp | (is_zero(key->protocol ^ IPPROTO_TCP) &
				is_zero((l4[TCP_FLAGS] & (TCP_SYN | TCP_ACK)) ^ TCP_SYN));
}

SEC("cgroup_skb/egress")
int netcatch_egress(struct __sk_buff *skb)
{
	const __u8 *ip = (const __u8 *)(long)skb->data, *end = (const __u8 *)(long)skb->data_end;
	struct netcatch_key key;
	__u64 is_own;
	__u32 at;

	if (ip + IP4_LEN > end)
		return LET_GO;
	if (ip[0] >> 4 !=
		4) { /* first, since nothing is known of its words: what holds for any holds for IPv4's */
		if (ip + IP6_LEN > end)
			return LET_GO;
		at = IP6_LEN;
		key.protocol = ip[IP6_PROTOCOL];
		SET_IP6(key.src, (const __u32 *)(ip + IP6_SOURCE));
		SET_IP6(key.dst, (const __u32 *)(ip + IP6_TARGET));
		is_own = is_own6((const __u32 *)key.dst);
	} else {
		__u32 address = *(const __u32 *)(ip + IP4_TARGET);

		at = (ip[0] & 15) * 4;
		key.protocol = ip[IP4_PROTOCOL];
		set_ip4(key.src, *(const __u32 *)(ip + IP4_SOURCE));
		set_ip4(key.dst, address);
		is_own = is_own4(address);
	}
	if (is_own || !read_ports(skb, at, &key))
		return LET_GO;
	return look_at_ends(skb, &key);
}

/* ---- what is listened on ---- */

/* The id of the task's group: the helper that tells it is not given here. */
static __always_inline __u64 group_of(__u64 task)
{
	__u64 at = 0, id = 0;

	if (!VALUE(field_known))
		return 0;
	READ(at, task + VALUE(field_task_cgroups));
	READ(at, at + VALUE(field_cgroups_own));
	READ(at, at + VALUE(field_cgroup_kn));
	READ(id, at + VALUE(field_kn_id));
	return id;
}

SEC("sockops")
int netcatch_listen(struct bpf_sock_ops *ctx)
{
	struct netcatch_record *record;

	if (ctx->op != BPF_SOCK_OPS_TCP_LISTEN_CB)
		return LET_GO;
	record = bpf_ringbuf_reserve(MAP_OF(ring), sizeof(*record), 0);
	if (!record) {
		count(NETCATCH_LOST, 1);
		return LET_GO;
	}
	__builtin_memset(&record->key, 0, sizeof(record->key));
	__builtin_memset(&record->owner, 0, sizeof(record->owner));
	record->kind = NETCATCH_LISTEN;
	record->len = 0;
	record->ns = bpf_ktime_get_ns();
	record->key.protocol = IPPROTO_TCP;
	record->key.sport = (__u16)ctx->local_port;
	if (ctx->family == AF_INET)
		set_ip4(record->key.src, ctx->local_ip4);
	else
		SET_IP6(record->key.src, ctx->local_ip6);
	set_who(&record->owner);
	record->owner.cgroup = group_of(bpf_get_current_task());
	record->owner.cookie = bpf_get_socket_cookie(ctx);
	bpf_ringbuf_submit(record, 0);
	return LET_GO;
}

char netcatch_license[] SEC("license") = "Dual BSD/GPL";
