/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files on the mounts that user space watches: what is read and written through each while it is open.
 *
 * A mount is known by the mark that user space has put on it (fanotify), so that a call on any other file
 * costs some loads and no map. When a file is closed no call tells: user space hears of it by that mark and
 * then looks here; and where the kernel uses the file's object again first, that is told as a record. */
#ifndef OBSERVER_MOUNTS_BPF_H
#define OBSERVER_MOUNTS_BPF_H

#include "observer/bpf/walk.bpf.h"
#include "observer/calls.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_OPENS_MAX);
	__type(key, __u64);
	__type(value, struct wire_open);
} opens SEC(".maps");

static __always_inline bool is_watched(__u64 file)
{
	__u64 mnt = (__u64)READ(file, file, f_path.mnt);

	if (!mnt || !bpf_core_field_exists(struct mount, mnt_fsnotify_mask))
		return false;
	return READ(mount, mnt - bpf_core_field_offset(struct mount, mnt), mnt_fsnotify_mask) &
	       FAN_CLOSE_WRITE;
}

/* ---- counting ---- */

/* The file's object may have been another's before, whose end was not looked at yet; and what has it now may be watched by
 * programs of another version, which keep an account of their own. */
static __always_inline struct wire_open *open_at(struct task_struct *t, __u32 fd)
{
	__u64 file = file_of(t, fd);
	struct wire_open *o = file && is_watched(file) ? bpf_map_lookup_elem(&opens, &file) : 0;

	return o && o->inode == (__u64)READ(file, file, f_inode) ? o : 0;
}

static __always_inline void count_read(struct task_struct *t, __u32 fd, __u64 bytes)
{
	struct wire_open *o = open_at(t, fd);

	if (o)
		__sync_fetch_and_add(&o->count.read, bytes);
}

static __always_inline void count_written(struct task_struct *t, __u32 fd, __u64 bytes)
{
	struct wire_open *o = open_at(t, fd);

	if (o)
		__sync_fetch_and_add(&o->count.written, bytes);
}

static __always_inline void note_flag(struct task_struct *t, __u32 fd, __u32 flag)
{
	struct wire_open *o = open_at(t, fd);

	if (o && !(o->count.flags & flag))
		__sync_fetch_and_or(&o->count.flags, flag);
}

/* A shared map of a file that is open for writing may be made writable later, unseen. */
static __always_inline void count_map(struct task_struct *t, struct pt_regs *regs)
{
	__u32 flags = regs->r10, fd = regs->r8;
	__u64 file;

	if (flags & MAP_ANONYMOUS)
		return;
	file = file_of(t, fd);
	if (!file || !is_watched(file))
		return;
	if ((flags & MAP_TYPE) != 2 && READ(file, file, f_mode) & FMODE_WRITE)
		note_flag(t, fd, WIRE_COUNT_MAPPED_WRITE);
	else
		note_flag(t, fd, WIRE_COUNT_MAPPED_READ);
}

/* How many bytes such a request moved is known later and elsewhere. */
#define IOCB_FD_AT 20 /* aio_fildes of struct iocb */
#define IOCBS_MAX  1024

static long note_iocb(__u32 i, void *ctx)
{
	const __u64 *list = ctx;
	__u64 iocb = 0;
	__u32 fd;

	if (bpf_probe_read_user(&iocb, sizeof(iocb), (void *)(*list + i * sizeof(iocb))) < 0 ||
		bpf_probe_read_user(&fd, sizeof(fd), (void *)(iocb + IOCB_FD_AT)) < 0)
		return 1;
	note_flag(PLAIN(task_struct, bpf_get_current_task_btf()), fd, WIRE_COUNT_ASYNC);
	return 0;
}

static __always_inline void count_submit(__u64 list, long n)
{
	bpf_loop(n > IOCBS_MAX ? IOCBS_MAX : n, note_iocb, &list, 0);
}

static __always_inline __u32 fd_arg(struct pt_regs *regs, __u8 index)
{
	if (index == 0)
		return regs->di;
	return index == 1 ? regs->si : regs->dx;
}

/* Every process of a box has call filters, and few others have: the cheapest look comes first. */
static __always_inline void count_call(
	void *ctx, const struct call *call, struct pt_regs *regs, long ret)
{
	struct task_struct *t = PLAIN(task_struct, bpf_get_current_task_btf());

	if (t->seccomp.filter_count.counter == 0 || is_left_over(ctx))
		return;
	switch (call->shape) {
	case CALL_READ:
		return count_read(t, regs->di, ret);
	case CALL_WRITE:
	case CALL_WRITEV:
		return count_written(t, regs->di, ret);
	case CALL_COPY:
		if (call->dir2 == CALL_NO)
			return;
		count_read(t, fd_arg(regs, call->dir2), ret);
		return count_written(t, fd_arg(regs, call->dir1), ret);
	case CALL_MAP:
		return count_map(t, regs);
	case CALL_IOCTL:
		return note_flag(t, regs->di, WIRE_COUNT_CLONED);
	case CALL_SUBMIT:
		return count_submit(regs->dx, ret);
	default:
		return;
	}
}

/* Decided by numbers alone. */
static __always_inline bool is_counted(const struct call *call, struct pt_regs *regs, long ret)
{
	switch (call->shape) {
	case CALL_READ:
	case CALL_WRITE:
	case CALL_WRITEV:
	case CALL_COPY:
	case CALL_SUBMIT:
		return ret > 0;
	case CALL_MAP:
		return (unsigned long)ret < -4095UL && !(regs->r10 & MAP_ANONYMOUS);
	case CALL_IOCTL:
		return ret == 0 && ((__u32)regs->si == FICLONE || (__u32)regs->si == FICLONERANGE);
	default:
		return false;
	}
}

/* ---- opening ---- */

/* The file that had this address before is closed, and nobody has looked meanwhile. It may be another box's. Forgotten only
 * once its record is on its way: we may be held up anywhere, and whoever looks then finds one or the other. Where he finds
 * both, the record comes second and is passed over. */
static __always_inline void tell_closed(const struct hand *h, __u64 file, struct wire_open *o)
{
	struct wire_closed *x = (void *)h->s->record;
	struct hand owner = {};
	__u64 opened_ns = *(volatile __u64 *)&o->opened_ns;

	if (!opened_ns || !hand_take(&owner, o->slot))
		return;
	head_set(&owner, &x->head, WIRE_CLOSED, 0, 0);
	x->file = file;
	x->opened_ns = opened_ns;
	x->count = o->count;
	owner.s->off = sizeof(*x);
	send_scratch(&owner);
	*(volatile __u64 *)&o->opened_ns = 0;
}

/* Whether an open of this file is told to whoever watches mounts. A handle can do nothing, and of a folder
 * nothing is read in bytes. */
static __always_inline bool is_mount_file(const struct hand *h, __u64 file)
{
	return h->group->flags & WIRE_GROUP_MOUNTS && is_watched(file) &&
	       !(READ(file, file, f_mode) & FMODE_PATH) &&
	       (READ(inode, READ(file, file, f_inode), i_mode) & S_IFMT) != S_IFDIR;
}

static __always_inline void open_begin(const struct hand *h, __u64 file)
{
	struct wire_open *o = bpf_map_lookup_elem(&opens, &file);

	if (o)
		tell_closed(h, file, o);
}

/* From here on it is counted. */
static __always_inline void open_end(const struct hand *h, struct wire_call *c, __u64 file)
{
	struct wire_open *o = bpf_map_lookup_elem(&opens, &file);
	struct wire_open one = {.opened_ns = c->head.ns, .slot = h->group->slot};

	one.inode = (__u64)READ(file, file, f_inode);
	c->head.flags |= WIRE_MOUNT;
	c->inode = one.inode;
	c->file = file;
	if (o) {
		*o = one;
	} else if (bpf_map_update_elem(&opens, &file, &one, BPF_NOEXIST) < 0) {
		c->file = 0;
		count_lost(h);
	}
}

/* ---- looking; run by user space ---- */

static __always_inline bool is_open(__u64 file, __u64 inode)
{
	if ((__u64)READ(file, file, f_inode) != inode)
		return false;
	if (bpf_core_field_exists(struct file, f_ref))
		return READ(file, file, f_ref.refcnt.counter) >= 0;
	return READ(file, file, f_count.counter) > 0;
}

static __always_inline void look_at_file(struct wire_look_item *item)
{
	__u64 file = item->file, opened_ns = item->opened_ns;
	struct wire_open *o = bpf_map_lookup_elem(&opens, &file);

	item->state = WIRE_LOOK_GONE;
	if (!o || o->opened_ns != opened_ns)
		return;
	if (is_open(file, o->inode)) {
		item->state = WIRE_LOOK_OPEN;
		if (item->what != WIRE_LOOK_END)
			return;
	} else {
		item->state = WIRE_LOOK_CLOSED;
	}
	item->count.read = o->count.read;
	item->count.written = o->count.written;
	item->count.flags = o->count.flags;
	if (__sync_val_compare_and_swap(&o->opened_ns, opened_ns, 0) != opened_ns)
		item->state = WIRE_LOOK_GONE;
}

static __always_inline void look_at(struct wire_look_item *item)
{
	if (item->what == WIRE_LOOK_INODE) {
		__u64 file =
			file_of(PLAIN(task_struct, bpf_get_current_task_btf()), (__u32)item->file);

		item->inode = file ? (__u64)READ(file, file, f_inode) : 0;
	} else if (item->what != WIRE_LOOK_NONE) {
		look_at_file(item);
	}
}

#endif
