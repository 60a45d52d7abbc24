/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The maps, a place to build a record in, and the way into the ring. */
#ifndef OBSERVER_RECORD_BPF_H
#define OBSERVER_RECORD_BPF_H

#include "observer/bpf/kernel.bpf.h"
#include "observer/wire.h"

#define RECORD_MASK  (WIRE_RECORD_MAX - 1)
#define RECORD_SLACK WIRE_CHUNK_MAX /* behind the mask: one read may begin at any masked place */

const volatile bool observer_has_cast = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_GROUPS_MAX);
	__type(key, __u64);
	__type(value, struct wire_group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_SLOTS_MAX);
	__type(key, __u32);
	__type(value, struct wire_slot);
} slots SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WIRE_SLOTS_MAX);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* By the number of a box's pid or mount namespace: its slot. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * WIRE_SLOTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} namespaces SEC(".maps");

/* One for each CPU; user space sets how many. Tracepoints run with preemption off and do not nest here. */
struct scratch {
	__u64 dentry, mount,
		root; /* the walk: addresses, kept in here so that they are plain numbers */
	__u32 off;    /* bytes of the record so far */
	__u32 end;    /* where the walk must stop */
	__u32 state;  /* enum walk_state */
	__u32 n;
	__u64 args[8];
	char record[WIRE_RECORD_MAX + RECORD_SLACK];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* What a process wrote to its descriptors 1 and 2; kept with the thread group's leader. */
struct written {
	__u64 bytes[2];
	__u64 told[2]; /* of these, in records */
	__u64 file[2]; /* inodes that were there when its program started */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct written);
} outputs SEC(".maps");

/* What one run of a program works with. */
struct hand {
	struct task_struct *task;
	struct wire_group *group;
	struct wire_slot *slot;
	struct scratch *s;
	void *ring;
};

static __always_inline struct scratch *scratch_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

/* Counted up each time the programs are attached, and the cookie of their links. The kernel takes a link down some
 * milliseconds after its pin is gone: whoever is attached by then would be told everything twice. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} attachment SEC(".maps");

const volatile bool observer_has_cookie = false;

static __always_inline bool is_left_over(void *ctx)
{
	__u32 key = 0;
	__u64 *last;

	if (!observer_has_cookie)
		return false;
	last = bpf_map_lookup_elem(&attachment, &key);
	return last && *last != bpf_get_attach_cookie(ctx);
}

/* Everything but the group. */
static __always_inline bool hand_take(struct hand *h, __u32 slot)
{
	h->slot = bpf_map_lookup_elem(&slots, &slot);
	h->ring = bpf_map_lookup_elem(&rings, &slot);
	h->s = scratch_here();
	h->task = PLAIN(task_struct, bpf_get_current_task_btf());
	if (h->slot && !h->ring)
		__sync_fetch_and_add(&h->slot->dropped, 1); /* never unseen in silence */
	return h->slot && h->ring && h->s;
}

/* A task's number where it is seen from this level; 0 where it is not. */
static __always_inline __u32 task_number(struct task_struct *t, __u32 level)
{
	/* a plain address: 6.1 does no sums with typed ones */
	__u64 pid = (__u64)READ(task_struct, t, thread_pid);
	__u32 nr = 0;

	if (READ(pid, pid, level) < level)
		return 0;
	bpf_probe_read_kernel(&nr, sizeof(nr),
		(void *)(pid + bpf_core_field_offset(struct pid, numbers) +
			 level * bpf_core_type_size(struct upid)));
	return nr;
}

static __always_inline void head_set(
	const struct hand *h, struct wire_head *head, __u8 kind, __u16 nr, __s32 ret)
{
	struct task_struct *t = h->task;

	head->ns = bpf_ktime_get_ns();
	head->exec = h->group ? h->group->exec : 0;
	head->task = task_number(t, h->slot->level);
	head->pid = t->pid == t->tgid ? head->task : task_number(t->group_leader, h->slot->level);
	head->host_pid = t->tgid;
	head->lost = h->slot->dropped;
	head->ret = ret;
	head->flags = h->group ? 0 : WIRE_ENTERED;
	if (h->group && h->group->filters && t->seccomp.filter_count.counter >= h->group->filters)
		head->flags |= WIRE_OWN_FILTER;
	head->nr = nr;
	head->kind = kind;
	head->pad = 0;
}

static __always_inline void count_lost(const struct hand *h)
{
	if (h->group)
		__sync_fetch_and_add(&h->group->dropped, 1);
	__sync_fetch_and_add(&h->slot->dropped, 1);
}

/* An empty record that is thrown away again carries the wake. It comes behind the real one, whose commit is
 * a full barrier: either user space sees that record when it has armed, or we see it armed. */
static __always_inline void wake_up(void *ring)
{
	void *p = bpf_ringbuf_reserve(ring, 8, 0);

	if (p)
		bpf_ringbuf_discard(p, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void send(const struct hand *h, const void *record, __u32 len)
{
	struct wire_slot *slot = h->slot;
	bool wake = false;

	if (bpf_ringbuf_output(h->ring, (void *)record, len, BPF_RB_NO_WAKEUP) < 0)
		count_lost(h);
	if (slot->armed) {
		slot->armed = 0;
		wake = true;
	}
	if (!slot->pressed && bpf_ringbuf_query(h->ring, BPF_RB_AVAIL_DATA) > slot->high) {
		slot->pressed = 1;
		wake = true;
	}
	if (wake)
		wake_up(h->ring);
}

/* Sends what was built in the scratch. */
static __always_inline void send_scratch(const struct hand *h)
{
	__u32 len = h->s->off;

	barrier_var(len);
	len &= RECORD_MASK;
	send(h, h->s->record, len);
}

#endif
