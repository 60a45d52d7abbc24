// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What processes in a traced cgroup do, seen where their system calls return. Captures only.
 *
 * The saved registers still hold number and arguments there, and the result is known, so nothing has to be
 * kept between entry and exit. What a file is called comes from the kernel's objects wherever there is one:
 * the program's memory may have changed. */
#include <stddef.h>

#include "observer/bpf/kernel.bpf.h"

#include "observer/bpf/mounts.bpf.h"
#include "observer/bpf/names.bpf.h"
#include "observer/bpf/processes.bpf.h"
#include "observer/bpf/record.bpf.h"
#include "observer/calls.h"
#include "observer/wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static const struct call calls[WIRE_CALLS_MAX] = {CALLS(CALL_ROW)};

/* Which of them: eight words, so that a call of no interest touches one cache line. Filled by user space
 * from the same table. */
const volatile __u64 observer_wanted[WIRE_CALLS_MAX / 64];

static __always_inline bool is_refusal(long ret)
{
	return ret == -EPERM || ret == -ENOSYS || ret == -EAFNOSUPPORT;
}

static __always_inline __u64 arg_of(const struct scratch *s, __u8 index)
{
	return s->args[index & 7];
}

static __always_inline void set_args(struct scratch *s, struct pt_regs *regs)
{
	s->args[0] = regs->di;
	s->args[1] = regs->si;
	s->args[2] = regs->dx;
	s->args[3] = regs->r10;
	s->args[4] = regs->r8;
	s->args[5] = regs->r9;
	s->args[7] = 0; /* CALL_NO & 7 */
}

static __always_inline int dir_of(const struct scratch *s, __u8 index)
{
	return index == CALL_NO ? AT_FDCWD : (int)arg_of(s, index);
}

static __always_inline struct wire_call *call_begin(const struct hand *h, __u16 nr, __s32 ret)
{
	struct wire_call *c = (void *)h->s->record;

	head_set(h, &c->head, WIRE_CALL, nr, ret);
	c->arg[0] = arg_of(h->s, calls[nr & (WIRE_CALLS_MAX - 1)].a);
	c->arg[1] = arg_of(h->s, calls[nr & (WIRE_CALLS_MAX - 1)].b);
	c->fmode = 0;
	c->imode = 0;
	__builtin_memset(c->skip, 0, sizeof(*c) - offsetof(struct wire_call, skip));
	h->s->off = sizeof(*c);
	return c;
}

static __always_inline void call_file(const struct hand *h, struct wire_call *c, __u64 file)
{
	__u32 flags;

	c->fmode = READ(file, file, f_mode);
	c->imode = READ(inode, READ(file, file, f_inode), i_mode);
	c->base_len[0] = add_file(h->s, file, &flags);
	c->head.flags |= flags | WIRE_FILE;
}

/* False: the text was not there, and the call did not fail for that. */
static __always_inline bool call_name(
	const struct hand *h, struct wire_call *c, int which, __u8 dir, __u8 name)
{
	struct name n;

	if (!add_name(h, dir_of(h->s, dir), arg_of(h->s, name), &n))
		return false;
	c->skip[which] = n.skip;
	c->base_len[which] = n.base_len;
	c->text_len[which] = n.text_len;
	if (which == 0)
		c->head.flags |= n.flags;
	else if (n.flags & WIRE_CUT1)
		c->head.flags |= WIRE_CUT2;
	if (h->task->mm->mm_users.counter > 1) {
		c->head.flags |= WIRE_SHARED_MM;
		c->again_len[which] = add_text(h->s, arg_of(h->s, name));
	}
	return true;
}

static __always_inline void send_call(const struct hand *h, bool whole, long ret)
{
	if (whole)
		send_scratch(h);
	else if (ret != -EFAULT)
		count_lost(h);
}

static __always_inline void on_open(
	const struct hand *h, const struct call *call, __u16 nr, long ret)
{
	__u64 file = ret >= 0 ? file_of(h->task, ret) : 0;
	bool is_of_mount = file && is_mount_file(h, file);
	struct wire_call *c;

	if (is_of_mount)
		open_begin(h, file);
	c = call_begin(h, nr, ret);
	if (nr == __NR_openat2)
		bpf_probe_read_user(&c->arg[0], sizeof(c->arg[0]), (void *)arg_of(h->s, 2));
	if (file)
		call_file(h, c, file);
	else if (call->name1 == CALL_NO || !call_name(h, c, 0, call->dir1, call->name1))
		return send_call(h, false, ret);
	if (is_of_mount)
		open_end(h, c, file);
	send_scratch(h);
}

static __always_inline void on_name(
	const struct hand *h, const struct call *call, __u16 nr, long ret)
{
	struct wire_call *c = call_begin(h, nr, ret);
	bool whole = call_name(h, c, 0, call->dir1, call->name1);

	if (whole && call->name2 != CALL_NO)
		c->text_len[1] = add_text(h->s, arg_of(h->s, call->name2));
	send_call(h, whole, ret);
}

static __always_inline void on_descriptor(
	const struct hand *h, const struct call *call, __u16 nr, long ret)
{
	struct wire_call *c = call_begin(h, nr, ret);
	__u64 file = file_of(h->task, arg_of(h->s, call->dir1));

	if (!file)
		return;
	call_file(h, c, file);
	if (call->name2 != CALL_NO)
		c->text_len[1] = add_text(h->s, arg_of(h->s, call->name2));
	send_scratch(h);
}

static __always_inline void on_names(
	const struct hand *h, const struct call *call, __u16 nr, long ret)
{
	struct wire_call *c = call_begin(h, nr, ret);
	bool whole = call_name(h, c, 0, call->dir1, call->name1) &&
	             call_name(h, c, 1, call->dir2, call->name2);

	send_call(h, whole, ret);
}

static __always_inline void on_symlink(
	const struct hand *h, const struct call *call, __u16 nr, long ret)
{
	struct wire_call *c = call_begin(h, nr, ret);
	bool whole;

	c->text_len[0] = add_text(h->s, arg_of(h->s, call->name1));
	whole = c->text_len[0] && call_name(h, c, 1, call->dir2, call->name2);
	send_call(h, whole, ret);
}

/* The name of a Unix socket, which is made there. It may end with the address and without a NUL; what comes
 * behind is the caller's memory, and the address is short. */
static __always_inline void on_bind(const struct hand *h, __u16 nr, long ret)
{
	__u64 address = arg_of(h->s, 1);
	struct wire_call *c;
	__u16 family = 0;
	char first = 0;

	bpf_probe_read_user(&family, sizeof(family), (void *)address);
	bpf_probe_read_user(&first, sizeof(first), (void *)(address + sizeof(family)));
	if (family != AF_UNIX || !first || arg_of(h->s, 2) <= sizeof(family))
		return;
	h->s->args[1] = address + sizeof(family);
	c = call_begin(h, nr, ret);
	send_call(h, call_name(h, c, 0, CALL_NO, 1), ret);
}

static __always_inline void on_refused(const struct hand *h, __u16 nr, long ret, __u32 flags)
{
	struct wire_refused *r = (void *)h->s->record;

	head_set(h, &r->head, WIRE_REFUSED, nr, ret);
	r->head.flags |= flags;
#pragma unroll
	for (int i = 0; i < 6; i++)
		r->args[i] = h->s->args[i];
	h->s->off = sizeof(*r);
	send_scratch(h);
}

/* Of the calls in the bitmap those that are told: decided before any map is asked. */
static __always_inline bool is_told(const struct call *call, struct pt_regs *regs, long ret)
{
	__u32 fd = regs->di;

	switch (call->shape) {
	case CALL_COPY:
		if (call->dir1 != 0)
			fd = call->dir1 == 1 ? regs->si : regs->dx;
		return ret > 0 && (fd == 1 || fd == 2);
	case CALL_WRITE:
	case CALL_WRITEV:
		return ret > 0 && (fd == 1 || fd == 2);
	case CALL_REFUSABLE:
		return is_refusal(ret);
	case CALL_EXEC:
		return ret < 0;
	case CALL_READ:
	case CALL_MAP:
	case CALL_IOCTL:
	case CALL_SUBMIT:
		return false;
	default:
		return true;
	}
}

static __always_inline void on_call(
	const struct hand *h, const struct call *call, __u16 nr, long ret)
{
	switch (call->shape) {
	case CALL_OPEN:
		return on_open(h, call, nr, ret);
	case CALL_NAME:
		return on_name(h, call, nr, ret);
	case CALL_FD:
		return on_descriptor(h, call, nr, ret);
	case CALL_NAMES:
		return on_names(h, call, nr, ret);
	case CALL_SYMLINK:
		return on_symlink(h, call, nr, ret);
	case CALL_BIND:
		return on_bind(h, nr, ret);
	case CALL_EXEC:
		return on_failed_exec(h, dir_of(h->s, call->dir1), arg_of(h->s, call->name1),
			arg_of(h->s, call->a), nr, ret);
	case CALL_WRITE:
	case CALL_WRITEV:
	case CALL_COPY:
		return on_write(h, call->shape, arg_of(h->s, call->dir1), arg_of(h->s, call->a),
			arg_of(h->s, call->b), nr, ret);
	default:
		return on_refused(h, nr, ret, 0);
	}
}

static __always_inline __u32 source_of(__u8 shape)
{
	switch (shape) {
	case CALL_OPEN:
	case CALL_NAME:
	case CALL_FD:
	case CALL_NAMES:
	case CALL_SYMLINK:
	case CALL_BIND:
		return WIRE_GROUP_FILES | WIRE_GROUP_MOUNTS;
	case CALL_WRITE:
	case CALL_WRITEV:
	case CALL_COPY:
		return WIRE_GROUP_OUTPUTS;
	case CALL_EXEC:
		return WIRE_GROUP_PROCESSES;
	default:
		return WIRE_GROUP_FILES | WIRE_GROUP_PROCESSES;
	}
}

SEC("tp_btf/sys_exit")
int BPF_PROG(observer_sys_exit, struct pt_regs *regs, long ret)
{
	__u64 nr = regs->orig_ax, cgroup;
	const struct call *call;
	struct hand h;
	bool compat;
	__u32 index;

	if (ret != -ENOSYS && nr >= WIRE_CALLS_MAX)
		return 0;
	index = nr;
	barrier_var(index); /* kept on the stack, 6.1 would forget its bounds */
	index &= WIRE_CALLS_MAX - 1;
	if (ret != -ENOSYS && !(observer_wanted[index / 64] >> (index % 64) & 1))
		return 0;
	call = &calls[index];
	if (ret != -ENOSYS && is_counted(call, regs, ret))
		count_call(ctx, call, regs, ret);
	if (ret != -ENOSYS && !is_told(call, regs, ret))
		return 0;
	cgroup = bpf_get_current_cgroup_id();
	h.group = bpf_map_lookup_elem(&groups, &cgroup);
	if (!h.group || is_left_over(ctx) || !hand_take(&h, h.group->slot))
		return 0;
	set_args(h.s, regs);
	compat = h.task->thread_info.status & TS_COMPAT;
	if (compat || ret == -ENOSYS) {
		/* glibc tries clone3 first, always */
		if (compat || nr != __NR_clone3)
			on_refused(&h, nr, ret, compat ? WIRE_COMPAT : 0);
		return 0;
	}
	if (h.group->flags & source_of(call->shape))
		on_call(&h, call, nr, ret);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(observer_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	__u64 cgroup = bpf_get_current_cgroup_id();
	struct hand h;

	h.group = bpf_map_lookup_elem(&groups, &cgroup);
	if (!is_left_over(ctx) && (h.group ? hand_take(&h, h.group->slot) : hand_enter(&h)))
		on_exec(&h, PLAIN(linux_binprm, bprm));
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(observer_fork, struct task_struct *parent, struct task_struct *child)
{
	__u64 cgroup = bpf_get_current_cgroup_id();
	struct hand h;

	h.group = bpf_map_lookup_elem(&groups, &cgroup);
	if (!h.group || is_left_over(ctx) || !hand_take(&h, h.group->slot))
		return 0;
	if (h.group->flags & WIRE_GROUP_OUTPUTS && child->pid == child->tgid)
		fork_streams(child);
	on_fork(&h, PLAIN(task_struct, child));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(observer_exit, struct task_struct *task)
{
	__u64 cgroup = bpf_get_current_cgroup_id();
	struct hand h;

	if (PLAIN(task_struct, task)->signal->live.counter != 0)
		return 0;
	h.group = bpf_map_lookup_elem(&groups, &cgroup);
	if (h.group && !is_left_over(ctx) && hand_take(&h, h.group->slot))
		on_exit(&h);
	return 0;
}

/* Run by user space, in its own context. */
SEC("syscall")
int observer_look(struct wire_look *look)
{
#pragma unroll
	for (int i = 0; i < WIRE_LOOKS_MAX; i++)
		look_at(&look->items[i]);
	return 0;
}
