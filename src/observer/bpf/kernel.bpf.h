/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kernel's structures, cut down to the fields that are read. CO-RE finds where they really are, so
 * order and size here mean nothing. */
#ifndef OBSERVER_KERNEL_BPF_H
#define OBSERVER_KERNEL_BPF_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long orig_ax, di, si, dx, r10, r8, r9;
};

struct ns_common {
	unsigned int inum;
};

struct uid_gid_extent {
	unsigned int lower_first;
};

struct uid_gid_map {
	struct uid_gid_extent extent[5];
};

struct user_namespace {
	struct uid_gid_map uid_map;
};

struct pid_namespace {
	struct ns_common ns;
	struct user_namespace *user_ns;
};

struct mnt_namespace {
	struct ns_common ns;
	struct user_namespace *user_ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct qstr {
	unsigned int len;
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	__u32 mnt_fsnotify_mask;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	unsigned int val;
} kuid_t;

struct file_count {
	long counter;
};

/* Since 6.13, where the top bit means that nobody holds it any more. */
struct file_ref {
	struct file_count refcnt;
};

struct file {
	struct path f_path;
	unsigned int f_mode;
	struct inode *f_inode;
	struct file_ref f_ref;
	struct file_count f_count;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path pwd;
};

struct cred {
	kuid_t uid;
};

struct mm_struct {
	unsigned long arg_start, arg_end;
	atomic_t mm_users;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
};

struct seccomp {
	atomic_t filter_count;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct thread_info {
	__u32 status;
};

struct task_struct {
	struct thread_info thread_info;
	int pid, tgid, exit_code;
	struct task_struct *real_parent, *group_leader;
	struct pid *thread_pid;
	const struct cred *cred;
	struct fs_struct *fs;
	struct files_struct *files;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct nsproxy *nsproxy;
	struct seccomp seccomp;
	struct css_set *cgroups;
};

struct linux_binprm {
	struct file *file;
	int argc;
};

#pragma clang attribute pop

/* Constants of the kernel that are in no header of its interface. */
#define FMODE_READ        1
#define FMODE_WRITE       2
#define FMODE_PATH        (1u << 14)
#define S_IFMT            0170000
#define S_IFDIR           0040000
#define MAP_TYPE          0x0f
#define MAP_SHARED        0x01
#define MAP_ANONYMOUS     0x20
#define FAN_CLOSE_WRITE   0x08
#define FICLONE           0x40049409
#define FICLONERANGE      0x4020940d
#define SIGNAL_GROUP_EXIT 4
#define TS_COMPAT         2
#define AT_FDCWD          (-100)
#define AF_UNIX           1
#define EPERM             1
#define EFAULT            14
#define ENOSYS            38
#define EAFNOSUPPORT      97

/* Since 6.2: makes an address a typed pointer, whose fields are plain loads; before, each is a helper's
 * call. Set by user space, so that the verifier drops the half that is not used. */
extern void *bpf_rdonly_cast(void *obj, __u32 btf_id) __ksym __weak;
extern const volatile bool observer_has_cast;

/* For each pointer that is followed from one it trusts the verifier searches the kernel's types by name:
 * a millisecond. Nothing here needs that trust. */
#define PLAIN(type, p) \
	((struct type *)(observer_has_cast ? bpf_rdonly_cast((void *)(p), \
						     bpf_core_type_id_kernel(struct type)) \
					   : (void *)(p)))

/* Text at a user address with its NUL: its length with that, or less than 1. Before 6.13 the empty string
 * gives 0, and its NUL is written all the same. */
static __always_inline long read_text(char *to, __u32 size, __u64 address)
{
	long n;

	to[0] = 1;
	n = bpf_probe_read_user_str(to, size, (void *)address);
	return n == 0 && to[0] == 0 ? 1 : n;
}

/* The field of a structure at an address of unknown type. */
#define READ(type, address, field) \
	({ \
		__u64 a_ = (__u64)(address); \
		__typeof__(((struct type *)0)->field) v_; \
		if (observer_has_cast) { \
			struct type *p_ = \
				bpf_rdonly_cast((void *)a_, bpf_core_type_id_kernel(struct type)); \
			v_ = p_->field; \
		} else { \
			bpf_core_read(&v_, sizeof(v_), &((struct type *)a_)->field); \
		} \
		v_; \
	})

#endif
