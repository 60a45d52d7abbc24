/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that are looked at, and where in their arguments the names stand: one table for both
 * halves. What they mean is decode's business. */
#ifndef OBSERVER_CALLS_H
#define OBSERVER_CALLS_H

#include <asm/unistd.h>
#include <linux/types.h>

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat    463
#define __NR_removexattrat 466
#endif

enum call_shape {
	CALL_NONE,
	CALL_OPEN,    /* returns a descriptor: the file object, or where it failed the name */
	CALL_NAME,    /* dir1, name1; name2, where there is one, is no path but an attribute */
	CALL_FD,      /* dir1 is the descriptor meant; name2 as above */
	CALL_NAMES,   /* dir1, name1, dir2, name2 */
	CALL_SYMLINK, /* name1 is the target's text; dir2, name2 */
	CALL_BIND,    /* an address at a, of b bytes: told where it is a name in the file system */
	CALL_EXEC,    /* where it failed: dir1, name1, argv in a */
	CALL_WRITE,   /* descriptor dir1, bytes at a */
	CALL_WRITEV,  /* descriptor dir1, iovec at a, b of them */
	CALL_COPY,    /* descriptor dir1 is written to by the kernel, dir2 is read */
	CALL_READ,    /* descriptor dir1; counted only, as the next three */
	CALL_MAP,
	CALL_IOCTL,
	CALL_SUBMIT,    /* iocb pointers at b, the result of them */
	CALL_REFUSABLE, /* told only where it was refused */
	CALL_RING,      /* told always: io_uring */
};

#define CALL_NO 15 /* no such argument; as a directory: the current one */

struct call {
	__u8 shape, dir1, name1, dir2, name2, a, b, pad;
};

/* X(call, shape, dir1, name1, dir2, name2, a, b) */
#define CALLS_OF_FILES(X) \
	X(open, OPEN, 15, 0, 15, 15, 1, 2) \
	X(openat, OPEN, 0, 1, 15, 15, 2, 3) \
	X(openat2, OPEN, 0, 1, 15, 15, 15, 15) \
	X(creat, OPEN, 15, 0, 15, 15, 15, 1) \
	X(open_by_handle_at, OPEN, 15, 15, 15, 15, 2, 15) \
	X(unlink, NAME, 15, 0, 15, 15, 15, 15) \
	X(unlinkat, NAME, 0, 1, 15, 15, 2, 15) \
	X(rmdir, NAME, 15, 0, 15, 15, 15, 15) \
	X(mkdir, NAME, 15, 0, 15, 15, 1, 15) \
	X(mkdirat, NAME, 0, 1, 15, 15, 2, 15) \
	X(mknod, NAME, 15, 0, 15, 15, 1, 2) \
	X(mknodat, NAME, 0, 1, 15, 15, 2, 3) \
	X(truncate, NAME, 15, 0, 15, 15, 1, 15) \
	X(ftruncate, FD, 0, 15, 15, 15, 1, 15) \
	X(rename, NAMES, 15, 0, 15, 1, 15, 15) \
	X(renameat, NAMES, 0, 1, 2, 3, 15, 15) \
	X(renameat2, NAMES, 0, 1, 2, 3, 4, 15) \
	X(bind, BIND, 15, 15, 15, 15, 1, 2) \
	X(link, NAMES, 15, 0, 15, 1, 15, 15) \
	X(linkat, NAMES, 0, 1, 2, 3, 4, 15) \
	X(symlink, SYMLINK, 15, 0, 15, 1, 15, 15) \
	X(symlinkat, SYMLINK, 15, 0, 1, 2, 15, 15) \
	X(chmod, NAME, 15, 0, 15, 15, 1, 15) \
	X(fchmod, FD, 0, 15, 15, 15, 1, 15) \
	X(fchmodat, NAME, 0, 1, 15, 15, 2, 15) \
	X(fchmodat2, NAME, 0, 1, 15, 15, 2, 3) \
	X(chown, NAME, 15, 0, 15, 15, 1, 2) \
	X(fchown, FD, 0, 15, 15, 15, 1, 2) \
	X(lchown, NAME, 15, 0, 15, 15, 1, 2) \
	X(fchownat, NAME, 0, 1, 15, 15, 2, 3) \
	X(setxattr, NAME, 15, 0, 15, 1, 15, 15) \
	X(lsetxattr, NAME, 15, 0, 15, 1, 15, 15) \
	X(fsetxattr, FD, 0, 15, 15, 1, 15, 15) \
	X(setxattrat, NAME, 0, 1, 15, 3, 15, 15) \
	X(removexattr, NAME, 15, 0, 15, 1, 15, 15) \
	X(lremovexattr, NAME, 15, 0, 15, 1, 15, 15) \
	X(fremovexattr, FD, 0, 15, 15, 1, 15, 15) \
	X(removexattrat, NAME, 0, 1, 15, 3, 15, 15)

#define CALLS_OF_PROCESSES(X) \
	X(execve, EXEC, 15, 0, 15, 15, 1, 15) \
	X(execveat, EXEC, 0, 1, 15, 15, 2, 15) \
	X(write, WRITE, 0, 15, 15, 15, 1, 2) \
	X(pwrite64, WRITE, 0, 15, 15, 15, 1, 2) \
	X(sendto, WRITE, 0, 15, 15, 15, 1, 2) \
	X(writev, WRITEV, 0, 15, 15, 15, 1, 2) \
	X(pwritev, WRITEV, 0, 15, 15, 15, 1, 2) \
	X(pwritev2, WRITEV, 0, 15, 15, 15, 1, 2) \
	X(sendmsg, COPY, 0, 15, 15, 15, 15, 15) \
	X(sendfile, COPY, 0, 15, 1, 15, 15, 15) \
	X(splice, COPY, 2, 15, 0, 15, 15, 15) \
	X(tee, COPY, 1, 15, 15, 15, 15, 15) \
	X(vmsplice, COPY, 0, 15, 15, 15, 15, 15) \
	X(copy_file_range, COPY, 2, 15, 0, 15, 15, 15)

#define CALLS_COUNTED(X) \
	X(read, READ, 0, 15, 15, 15, 15, 15) \
	X(pread64, READ, 0, 15, 15, 15, 15, 15) \
	X(readv, READ, 0, 15, 15, 15, 15, 15) \
	X(preadv, READ, 0, 15, 15, 15, 15, 15) \
	X(preadv2, READ, 0, 15, 15, 15, 15, 15) \
	X(mmap, MAP, 4, 15, 15, 15, 15, 15) \
	X(ioctl, IOCTL, 0, 15, 15, 15, 15, 15) \
	X(io_submit, SUBMIT, 15, 15, 15, 15, 15, 2)

#define CALLS_REFUSABLE(X) \
	X(io_uring_setup, RING, 15, 15, 15, 15, 15, 15) \
	X(io_uring_enter, RING, 15, 15, 15, 15, 15, 15) \
	X(io_uring_register, RING, 15, 15, 15, 15, 15, 15) \
	CALL_REFUSABLE_ONE(X, socket) \
	CALL_REFUSABLE_ONE(X, socketpair) \
	CALL_REFUSABLE_ONE(X, clone) \
	CALL_REFUSABLE_ONE(X, ptrace) \
	CALL_REFUSABLE_ONE(X, syslog) \
	CALL_REFUSABLE_ONE(X, uselib) \
	CALL_REFUSABLE_ONE(X, personality) \
	CALL_REFUSABLE_ONE(X, ustat) \
	CALL_REFUSABLE_ONE(X, sysfs) \
	CALL_REFUSABLE_ONE(X, vhangup) \
	CALL_REFUSABLE_ONE(X, modify_ldt) \
	CALL_REFUSABLE_ONE(X, pivot_root) \
	CALL_REFUSABLE_ONE(X, _sysctl) \
	CALL_REFUSABLE_ONE(X, adjtimex) \
	CALL_REFUSABLE_ONE(X, chroot) \
	CALL_REFUSABLE_ONE(X, acct) \
	CALL_REFUSABLE_ONE(X, settimeofday) \
	CALL_REFUSABLE_ONE(X, mount) \
	CALL_REFUSABLE_ONE(X, umount2) \
	CALL_REFUSABLE_ONE(X, swapon) \
	CALL_REFUSABLE_ONE(X, swapoff) \
	CALL_REFUSABLE_ONE(X, reboot) \
	CALL_REFUSABLE_ONE(X, sethostname) \
	CALL_REFUSABLE_ONE(X, setdomainname) \
	CALL_REFUSABLE_ONE(X, iopl) \
	CALL_REFUSABLE_ONE(X, ioperm) \
	CALL_REFUSABLE_ONE(X, init_module) \
	CALL_REFUSABLE_ONE(X, delete_module) \
	CALL_REFUSABLE_ONE(X, quotactl) \
	CALL_REFUSABLE_ONE(X, lookup_dcookie) \
	CALL_REFUSABLE_ONE(X, clock_settime) \
	CALL_REFUSABLE_ONE(X, kexec_load) \
	CALL_REFUSABLE_ONE(X, add_key) \
	CALL_REFUSABLE_ONE(X, request_key) \
	CALL_REFUSABLE_ONE(X, keyctl) \
	CALL_REFUSABLE_ONE(X, unshare) \
	CALL_REFUSABLE_ONE(X, move_pages) \
	CALL_REFUSABLE_ONE(X, perf_event_open) \
	CALL_REFUSABLE_ONE(X, fanotify_init) \
	CALL_REFUSABLE_ONE(X, fanotify_mark) \
	CALL_REFUSABLE_ONE(X, name_to_handle_at) \
	CALL_REFUSABLE_ONE(X, clock_adjtime) \
	CALL_REFUSABLE_ONE(X, setns) \
	CALL_REFUSABLE_ONE(X, process_vm_readv) \
	CALL_REFUSABLE_ONE(X, process_vm_writev) \
	CALL_REFUSABLE_ONE(X, kcmp) \
	CALL_REFUSABLE_ONE(X, finit_module) \
	CALL_REFUSABLE_ONE(X, kexec_file_load) \
	CALL_REFUSABLE_ONE(X, bpf) \
	CALL_REFUSABLE_ONE(X, userfaultfd) \
	CALL_REFUSABLE_ONE(X, pidfd_getfd) \
	CALL_REFUSABLE_ONE(X, open_tree) \
	CALL_REFUSABLE_ONE(X, move_mount) \
	CALL_REFUSABLE_ONE(X, fsopen) \
	CALL_REFUSABLE_ONE(X, fsconfig) \
	CALL_REFUSABLE_ONE(X, fsmount) \
	CALL_REFUSABLE_ONE(X, fspick) \
	CALL_REFUSABLE_ONE(X, mount_setattr) \
	CALL_REFUSABLE_ONE(X, quotactl_fd) \
	CALL_REFUSABLE_ONE(X, landlock_create_ruleset) \
	CALL_REFUSABLE_ONE(X, memfd_secret) \
	CALL_REFUSABLE_ONE(X, process_mrelease)
#define CALL_REFUSABLE_ONE(X, name) X(name, REFUSABLE, 15, 15, 15, 15, 15, 15)

#define CALLS(X)                    CALLS_OF_FILES(X) CALLS_OF_PROCESSES(X) CALLS_COUNTED(X) CALLS_REFUSABLE(X)

/* As initialisers of an array of WIRE_CALLS_MAX struct call. */
#define CALL_ROW(name, shape, d1, n1, d2, n2, a, b) \
	[__NR_##name] = {CALL_##shape, d1, n1, d2, n2, a, b, 0},

#endif
