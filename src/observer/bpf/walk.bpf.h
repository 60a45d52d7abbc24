/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* From a dentry and its mount up to the root of the mount namespace, each name into the record.
 *
 * The walk takes no locks: a rename at the same moment may give a mixed path, as d_path() without its
 * sequence counter would. Running offsets live in the scratch: on the stack the verifier would follow each
 * value of them and not come to an end. */
#ifndef OBSERVER_WALK_BPF_H
#define OBSERVER_WALK_BPF_H

#include "observer/bpf/record.bpf.h"

#define WALK_STEPS_MAX 4096 /* names and mounts on one path */
#define NAME_MASK      255

enum walk_state {
	WALK_ON,
	WALK_ROOT,     /* came to the root */
	WALK_INTERNAL, /* to a name that is on no mount: memory, a pipe, a socket */
	WALK_CUT,      /* there was more than fits */
};

static __always_inline long walk_end(struct scratch *s, enum walk_state state)
{
	s->state = state;
	return 1;
}

/* At the root of a mount: on to the place where it is mounted. */
static __always_inline long walk_mount(struct scratch *s)
{
	__u64 mount = s->mount, parent = (__u64)READ(mount, mount, mnt_parent);

	if (parent == mount || !parent)
		return walk_end(s, WALK_ROOT);
	s->dentry = (__u64)READ(mount, mount, mnt_mountpoint);
	s->mount = parent;
	s->root = (__u64)READ(mount, parent, mnt.mnt_root);
	return 0;
}

static long walk_step(__u32 i, void *ctx)
{
	struct scratch *s = scratch_here();
	__u64 dentry, parent;
	__u32 off, len;

	if (!s)
		return 1;
	dentry = s->dentry;
	if (dentry == s->root)
		return walk_mount(s);
	parent = (__u64)READ(dentry, dentry, d_parent);
	off = s->off;
	if (off >= s->end)
		return walk_end(s, WALK_CUT);
	len = READ(dentry, dentry, d_name.len);
	barrier_var(len);
	len &= NAME_MASK;
	barrier_var(off);
	off &= RECORD_MASK;
	if (bpf_probe_read_kernel(&s->record[off], len + 1, READ(dentry, dentry, d_name.name)) < 0)
		return walk_end(s, WALK_CUT);
	s->off = off + len + 1;
	s->dentry = parent;
	return parent == dentry ? walk_end(s, WALK_INTERNAL) : 0;
}

/* Adds a path to the record; returns its length. How it ended stands in the scratch. Not inlined: there would
 * be eight of it, and the way of one call would touch twice the code. */
static __noinline __u16 walk(struct scratch *s, __u64 dentry, __u64 vfsmount)
{
	__u32 start = s->off;

	s->dentry = dentry;
	s->mount = vfsmount - bpf_core_field_offset(struct mount, mnt);
	s->root = (__u64)READ(vfsmount, vfsmount, mnt_root);
	s->end = start + WIRE_PATH_MAX - NAME_MASK - 1;
	s->state = WALK_ON;
	bpf_loop(WALK_STEPS_MAX, walk_step, 0, 0);
	return s->off - start;
}

/* The open file behind a descriptor of the current process, 0 where there is none. */
static __always_inline __u64 file_of(struct task_struct *t, __u32 fd)
{
	struct fdtable *fdt = t->files->fdt;
	__u64 file = 0;

	if (fd >= fdt->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), READ(fdtable, fdt, fd) + fd);
	return file;
}

#endif
