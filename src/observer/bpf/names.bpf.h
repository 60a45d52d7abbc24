/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Names of files into a record: from the kernel's own objects where there are any, else the text that the
 * program passed and the folder it counts from. */
#ifndef OBSERVER_NAMES_BPF_H
#define OBSERVER_NAMES_BPF_H

#include "observer/bpf/walk.bpf.h"

#define FD_DIGITS_MAX 5

/* The flags of the first path; those of a second one lie one further where they exist. */
static __always_inline __u32 path_flags(__u64 dentry, __u64 root, __u32 state)
{
	__u32 flags = 0;

	if (state == WALK_CUT || state == WALK_ON)
		flags |= WIRE_CUT1;
	else if (state == WALK_INTERNAL)
		flags |= WIRE_INTERNAL1;
	if (dentry != root && !READ(dentry, dentry, d_hash.pprev))
		flags |= WIRE_DELETED1;
	return flags;
}

/* Adds where a file is; returns the length. */
static __always_inline __u16 add_file(struct scratch *s, __u64 file, __u32 *ret_flags)
{
	__u64 dentry = (__u64)READ(file, file, f_path.dentry),
	      mnt = (__u64)READ(file, file, f_path.mnt);
	__u64 root = (__u64)READ(vfsmount, mnt, mnt_root);
	__u16 len = walk(s, dentry, mnt);

	*ret_flags = path_flags(dentry, root, s->state);
	return len;
}

static __always_inline __u16 add_cwd(struct scratch *s, struct task_struct *t, __u32 *ret_flags)
{
	__u16 len;

	/* through the scratch, which makes plain numbers of them */
	s->dentry = (__u64)t->fs->pwd.dentry;
	s->mount = (__u64)t->fs->pwd.mnt;
	len = walk(s, s->dentry, s->mount);
	*ret_flags = s->state == WALK_ROOT ? 0 : WIRE_CUT1;
	return len;
}

/* Adds the text at a user address with its NUL; 0 where it cannot be read. */
static __always_inline __u16 add_text(struct scratch *s, __u64 address)
{
	__u32 off = s->off;
	long n;

	barrier_var(off);
	off &= RECORD_MASK;
	n = read_text(&s->record[off], WIRE_TEXT_MAX, address);
	if (n <= 0)
		return 0;
	s->off = off + n;
	return n;
}

static __always_inline bool text_is(const char *at, __u64 eight)
{
	return *(const __u64 *)at == eight;
}

/* "/proc/self/fd/N" and "/dev/fd/N" at the start of a text: N, and how many bytes that takes. The process
 * may be gone when user space reads it, so the folder is looked up here. */
static __always_inline int fd_in_text(struct scratch *s, __u32 off, __u8 *ret_skip)
{
	const char *at;
	__u32 k = 0;
	int fd = 0;

	barrier_var(off);
	off &= RECORD_MASK;
	at = &s->record[off];
	if (text_is(at, 0x2f64662f7665642fULL)) { /* /dev/fd/ */
		at += 8;
	} else if (text_is(at, 0x65732f636f72702fULL) && text_is(at + 6, 0x2f64662f666c6573ULL)) {
		at += 14; /* /proc/self/fd/: "/proc/se", "self/fd/" */
	} else {
		return -1;
	}
	for (; k < FD_DIGITS_MAX && at[k] >= '0' && at[k] <= '9'; k++)
		fd = fd * 10 + at[k] - '0';
	if (k == 0 || (at[k] != '/' && at[k] != '\0'))
		return -1;
	*ret_skip = at - &s->record[off] + k;
	return fd;
}

struct name {
	__u16 text_len, base_len;
	__u8 skip;
	__u32 flags;
};

/* Adds a name: its text, and behind it the folder it counts from where it is relative. */
static __always_inline bool add_name(const struct hand *h, int dir, __u64 address, struct name *ret)
{
	struct scratch *s = h->s;
	__u32 start = s->off;
	__u64 file;
	int fd = dir;

	ret->base_len = 0;
	ret->skip = 0;
	ret->flags = 0;
	ret->text_len = add_text(s, address);
	if (!ret->text_len) {
		ret->flags = WIRE_LOST_TEXT;
		return false;
	}
	if (s->record[start & RECORD_MASK] == '/') {
		fd = fd_in_text(s, start, &ret->skip);
		if (fd < 0)
			return true;
	}
	if (fd == AT_FDCWD) {
		ret->base_len = add_cwd(s, h->task, &ret->flags);
		return true;
	}
	file = file_of(h->task, fd);
	if (file)
		ret->base_len = add_file(s, file, &ret->flags);
	else
		ret->flags = WIRE_CUT1;
	return true;
}

#endif
