/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Programs: how they start, what they print, how they end. */
#ifndef OBSERVER_PROCESSES_BPF_H
#define OBSERVER_PROCESSES_BPF_H

#include "observer/bpf/mounts.bpf.h"
#include "observer/bpf/names.bpf.h"
#include "observer/bpf/record.bpf.h"
#include "observer/calls.h"
#include "observer/wire.h"

#define ARGS_MAX 65536 /* of a call that failed; counted, and copied as far as they fit */
#define IOVS_MAX 16

/* The kernel gives a namespace's number to another one once a box is gone whose supervisor died: the number is the
 * box's only where its ids are, too. */
static __always_inline bool is_of_box(__u64 user_ns, __u32 slot)
{
	struct wire_slot *box = bpf_map_lookup_elem(&slots, &slot);

	return box && user_ns &&
	       (box->id_base == 0 || READ(user_namespace, user_ns, uid_map.extent[0].lower_first) ==
					     box->id_base);
}

/* A program in the box whose cgroup is none of ours: by the number of its pid or mount namespace. */
static __always_inline bool hand_enter(struct hand *h)
{
	struct task_struct *task = PLAIN(task_struct, bpf_get_current_task_btf());
	__u64 pid = (__u64)READ(task_struct, task, thread_pid);
	struct mnt_namespace *mounts = task->nsproxy->mnt_ns;
	struct upid last = {};
	__u32 key, *slot;

	bpf_probe_read_kernel(&last, sizeof(last),
		(void *)(pid + bpf_core_field_offset(struct pid, numbers) +
			 READ(pid, pid, level) * bpf_core_type_size(struct upid)));
	key = last.ns ? READ(pid_namespace, last.ns, ns.inum) : 0;
	slot = bpf_map_lookup_elem(&namespaces, &key);
	if (slot && is_of_box((__u64)READ(pid_namespace, last.ns, user_ns), *slot))
		return hand_take(h, *slot);
	key = mounts->ns.inum;
	slot = bpf_map_lookup_elem(&namespaces, &key);
	return slot && is_of_box((__u64)mounts->user_ns, *slot) && hand_take(h, *slot);
}

static __always_inline struct written *written_find(void)
{
	return bpf_task_storage_get(&outputs, bpf_get_current_task_btf()->group_leader, 0, 0);
}

static __always_inline struct written *written_make(void)
{
	struct written none = {};

	return bpf_task_storage_get(&outputs, bpf_get_current_task_btf()->group_leader, &none,
		BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void set_written(struct wire_exit *x, const struct written *w)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		x->written[i] = w ? w->bytes[i] - w->told[i] : 0;
		x->file[i] = w ? w->file[i] : 0;
	}
}

static __always_inline __u64 inode_at(const struct hand *h, __u32 fd)
{
	__u64 file = file_of(h->task, fd);

	return file ? READ(inode, READ(file, file, f_inode), i_ino) : 0;
}

/* Tells what the program that is being replaced had written untold, and begins anew with the files that this
 * one was given. A shell that has another one at 1 or 2 later has it for a redirection of its own. */
static __always_inline void exec_streams(const struct hand *h)
{
	struct wire_exit *x = (void *)h->s->record;
	struct written *w = written_make();

	if (!w)
		return;
	set_written(x, w);
	if (x->written[0] || x->written[1]) {
		head_set(h, &x->head, WIRE_TOTALS, 0, 0);
		h->s->off = sizeof(*x);
		send_scratch(h);
	}
#pragma unroll
	for (int i = 0; i < 2; i++) {
		w->bytes[i] = 0;
		w->told[i] = 0;
		w->file[i] = inode_at(h, i + 1);
	}
}

/* One more piece of the arguments into a record of its own. */
static __always_inline bool send_chunk(const struct hand *h, __u64 from, __u32 offset, __u32 len)
{
	struct wire_chunk *c = (void *)h->s->record;

	barrier_var(len);
	if (len > WIRE_CHUNK_MAX)
		len = WIRE_CHUNK_MAX;
	if (bpf_probe_read_user(c + 1, len, (void *)from) < 0)
		return false;
	head_set(h, &c->head, WIRE_CHUNK, 0, 0);
	c->offset = offset;
	c->len = len;
	h->s->off = sizeof(*c) + len;
	send_scratch(h);
	return true;
}

struct chunk_loop {
	const struct hand *h;
	__u64 start, bytes;
};

static long chunk_step(__u32 i, void *ctx)
{
	const struct chunk_loop *c = ctx;
	struct scratch *s = scratch_here();
	__u64 left;

	if (!s || s->n + WIRE_ARGV_HEAD >= c->bytes)
		return 1;
	left = c->bytes - s->n;
	if (left > WIRE_CHUNK_MAX)
		left = WIRE_CHUNK_MAX;
	if (!send_chunk(c->h, c->start + s->n, s->n, left))
		return 1;
	s->n += left;
	return 0;
}

/* What does not fit into the exec's own record, before it. Returns how many bytes. */
static __always_inline __u32 send_chunks(const struct hand *h, __u64 start, __u64 bytes)
{
	struct chunk_loop c = {.h = h, .start = start, .bytes = bytes};

	h->s->n = 0;
	if (bytes > WIRE_ARGV_HEAD)
		bpf_loop(WIRE_ARGV_MAX / WIRE_CHUNK_MAX, chunk_step, &c, 0);
	return h->s->n;
}

static __always_inline void exec_argv(struct scratch *s, struct wire_exec *e, __u64 at, __u64 left)
{
	__u32 off = s->off, len = left;

	if (left > WIRE_ARGV_HEAD)
		len = WIRE_ARGV_HEAD;
	barrier_var(off);
	off &= RECORD_MASK;
	barrier_var(len);
	len &= WIRE_CHUNK_MAX - 1;
	e->argv_len = 0;
	if (bpf_probe_read_user(&s->record[off], len, (void *)at) == 0) {
		s->off = off + len;
		e->argv_len = len;
	}
}

static __always_inline __u32 parent_number(const struct hand *h)
{
	return task_number(h->task->real_parent->group_leader, h->slot->level);
}

/* The first program of a group is the box's own doing: its call filters, and its place among the pid
 * namespaces. */
static __always_inline void exec_first(const struct hand *h)
{
	h->group->filters = h->task->seccomp.filter_count.counter + 1;
	h->slot->level = READ(pid, READ(task_struct, h->task, thread_pid), level);
}

static __always_inline void on_exec(const struct hand *h, struct linux_binprm *bprm)
{
	struct task_struct *task = h->task;
	__u64 start = task->mm->arg_start, bytes = task->mm->arg_end - start;
	struct wire_exec *e = (void *)h->s->record;
	__u32 flags, cwd_flags, sent;

	if (h->group && !h->group->filters)
		exec_first(h);
	if (h->group && h->group->flags & WIRE_GROUP_OUTPUTS)
		exec_streams(h);
	if (h->group && !(h->group->flags & WIRE_GROUP_PROCESSES))
		return;
	sent = send_chunks(h, start, bytes);
	head_set(h, &e->head, WIRE_EXEC, 0, 0);
	e->argv_bytes = bytes;
	e->argc = bprm->argc;
	e->kuid = task->cred->uid.val;
	e->ppid = parent_number(h);
	e->skip = 0;
	e->pad = 0;
	e->chunks_len = sent;
	e->file[0] = inode_at(h, 1);
	e->file[1] = inode_at(h, 2);
	h->s->off = sizeof(*e);
	e->path_len = add_file(h->s, (__u64)bprm->file, &flags);
	e->cwd_len = add_cwd(h->s, task, &cwd_flags);
	e->head.flags |= flags | WIRE_FILE | (cwd_flags & WIRE_CUT1 ? WIRE_CUT2 : 0);
	e->inode = (__u64)READ(file, (__u64)bprm->file, f_inode);
	if (is_watched((__u64)bprm->file))
		e->head.flags |= WIRE_MOUNT;
	exec_argv(h->s, e, start + sent, bytes - sent);
	send_scratch(h);
}

struct argv_copy {
	__u64 at;    /* the next pointer */
	__u64 bytes; /* all of them */
	__u32 n;
	__u32 full;
};

static long copy_arg(__u32 i, void *ctx)
{
	struct argv_copy *c = ctx;
	struct scratch *s = scratch_here();
	__u64 text = 0;
	__u32 off;
	long n;

	if (!s || bpf_probe_read_user(&text, sizeof(text), (void *)c->at) < 0 || !text)
		return 1;
	c->at += sizeof(text);
	c->n++;
	off = s->off;
	if (c->full || off >= s->end) {
		c->full = 1;
		return 0;
	}
	barrier_var(off);
	off &= RECORD_MASK;
	n = read_text(&s->record[off], WIRE_TEXT_MAX, text);
	if (n <= 0)
		c->full = 1;
	else
		s->off = off + n;
	if (n == WIRE_TEXT_MAX)
		c->full = 1;
	return 0;
}

/* The arguments of a call that failed lie one by one in the caller's memory. */
static __always_inline void failed_argv(struct scratch *s, struct wire_exec *e, __u64 argv)
{
	struct argv_copy c = {.at = argv};
	__u32 start = s->off;

	s->end = start + WIRE_ARGV_HEAD - WIRE_TEXT_MAX;
	bpf_loop(ARGS_MAX, copy_arg, &c, 0);
	e->argc = c.n;
	e->argv_len = s->off - start;
	e->argv_bytes = e->argv_len;
	if (c.full)
		e->head.flags |= WIRE_ARGV_CUT;
}

static __always_inline void on_failed_exec(
	const struct hand *h, int dir, __u64 path, __u64 argv, __u16 nr, long ret)
{
	struct wire_exec *e = (void *)h->s->record;
	struct name n;

	head_set(h, &e->head, WIRE_EXEC, nr, ret);
	e->kuid = h->task->cred->uid.val;
	e->ppid = parent_number(h);
	e->pad = 0;
	e->inode = 0;
	e->chunks_len = 0;
	h->s->off = sizeof(*e);
	if (!add_name(h, dir, path, &n)) {
		if (ret != -EFAULT)
			count_lost(h);
		return;
	}
	e->path_len = n.text_len;
	e->cwd_len = n.base_len;
	e->skip = n.skip;
	e->head.flags |= n.flags;
	failed_argv(h->s, e, argv);
	send_scratch(h);
}

/* The stream that a descriptor leads to now, by the files that the program was given: 0, 1, or -1. */
static __always_inline int stream_of(const struct hand *h, const struct written *w, __u32 fd)
{
	__u64 file = inode_at(h, fd);
	int at = (fd - 1) & 1;

	if (!file)
		return -1;
	if (w->file[at] == file)
		return at;
	return w->file[1 - at] == file ? 1 - at : -1;
}

static __always_inline __u32 copy_output(struct scratch *s, __u64 from, __u32 len)
{
	__u32 off = s->off;

	barrier_var(off);
	off &= RECORD_MASK;
	barrier_var(len);
	if (len > WIRE_OUTPUT_MAX)
		len = WIRE_OUTPUT_MAX;
	if (bpf_probe_read_user(&s->record[off], len, (void *)from) < 0)
		return 0;
	s->off = off + len;
	return len;
}

struct iovec_in {
	__u64 base, len;
};

static long copy_iovec(__u32 i, void *ctx)
{
	const __u64 *at = ctx;
	struct scratch *s = scratch_here();
	struct iovec_in v;
	__u32 off;

	if (!s)
		return 1;
	off = s->off;
	if (off >= s->end || bpf_probe_read_user(&v, sizeof(v), (void *)(*at + i * sizeof(v))) < 0)
		return 1;
	if (v.len > s->end - off)
		v.len = s->end - off;
	copy_output(s, v.base, v.len);
	return 0;
}

static __always_inline __u32 copy_iovecs(struct scratch *s, __u64 at, __u32 n, __u32 len)
{
	__u32 start = s->off;

	s->end = start + len;
	bpf_loop(n > IOVS_MAX ? IOVS_MAX : n, copy_iovec, &at, 0);
	return s->off - start;
}

static __always_inline void on_write(
	const struct hand *h, __u8 shape, __u32 fd, __u64 at, __u64 n, __u16 nr, long ret)
{
	struct wire_output *o = (void *)h->s->record;
	struct written *w = written_find();
	int stream = w ? stream_of(h, w, fd) : -1;
	__u64 before;
	__u32 len;

	if (stream < 0)
		return;
	stream &= 1;
	before = __sync_fetch_and_add(&w->bytes[stream], ret);
	if (before >= WIRE_OUTPUT_MAX)
		return;
	__sync_fetch_and_add(&w->told[stream], ret);
	len = WIRE_OUTPUT_MAX - before;
	if (len > (__u64)ret)
		len = ret;
	head_set(h, &o->head, WIRE_OUTPUT, nr, 0);
	o->written = ret;
	o->file = w->file[stream];
	o->stream = stream;
	h->s->off = sizeof(*o);
	o->len = 0;
	if (shape == CALL_WRITE)
		o->len = copy_output(h->s, at, len);
	else if (shape == CALL_WRITEV)
		o->len = copy_iovecs(h->s, at, n, len);
	send_scratch(h);
}

/* A child that execs nothing goes on with its parent's streams. */
static __always_inline void fork_streams(struct task_struct *child)
{
	struct written *w = written_find(), copy = {};

	if (!w)
		return;
	copy.file[0] = w->file[0];
	copy.file[1] = w->file[1];
	(void)bpf_task_storage_get(&outputs, child, &copy, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void on_fork(const struct hand *h, struct task_struct *child)
{
	struct wire_fork *f = (void *)h->s->record;

	if (!(h->group->flags & WIRE_GROUP_PROCESSES))
		return;
	head_set(h, &f->head, WIRE_FORK, 0, 0);
	f->child = task_number(child, h->slot->level);
	f->is_thread = child->tgid != child->pid;
	h->s->off = sizeof(*f);
	send_scratch(h);
}

static __always_inline void on_exit(const struct hand *h)
{
	struct task_struct *task = h->task;
	struct wire_exit *x = (void *)h->s->record;
	struct signal_struct *signal = task->signal;
	struct written *w = written_find();
	int status = task->group_leader->exit_code;

	if (signal->flags & SIGNAL_GROUP_EXIT)
		status = signal->group_exit_code;
	head_set(h, &x->head, WIRE_EXIT, 0, status);
	set_written(x, w);
	h->s->off = sizeof(*x);
	send_scratch(h);
}

#endif
