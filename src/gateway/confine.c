/* SPDX-License-Identifier: Apache-2.0 */
/* The filter: what the relay itself calls, what memory and threads of libc call, and reading of files, for the
 * roots that upstream's certificates are checked with. Nothing that starts a program, makes a file, sends a
 * signal to another process, or opens a socket that is not TCP or UDP. What is not there fails with ENOSYS: a
 * library that probes goes on; another gate than the 64-bit one ends the process. */
#include "gateway/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/callfilter.h"

static const int allowed[] = {
	__NR_read,
	__NR_write,
	__NR_readv,
	__NR_writev,
	__NR_close,
	__NR_fcntl,
	__NR_ioctl,
	__NR_lseek,
	__NR_pread64,
	__NR_fstat,
	__NR_newfstatat,
	__NR_statx,
	__NR_getdents64,
#ifdef __NR_stat
	__NR_stat,
	__NR_lstat,
	__NR_epoll_wait,
	__NR_poll,
	__NR_time,
	__NR_access,
#endif
	__NR_faccessat,
	__NR_readlinkat,
	__NR_ppoll,
	__NR_epoll_pwait,
	__NR_epoll_ctl,
	__NR_accept4,
	__NR_bind,
	__NR_connect,
	__NR_getsockname,
	__NR_getpeername,
	__NR_getsockopt,
	__NR_setsockopt,
	__NR_shutdown,
	__NR_sendto,
	__NR_recvfrom,
	__NR_sendmsg,
	__NR_recvmsg,
	__NR_sendmmsg,
	__NR_recvmmsg,
	__NR_splice,
	__NR_pipe2,
	__NR_brk,
	__NR_munmap,
	__NR_mremap,
	__NR_madvise,
	__NR_futex,
	__NR_sched_yield,
	__NR_clock_gettime,
	__NR_clock_getres,
	__NR_clock_nanosleep,
	__NR_gettimeofday,
	__NR_getrandom,
	__NR_getpid,
	__NR_gettid,
	__NR_getuid,
	__NR_geteuid,
	__NR_getgid,
	__NR_getegid,
	__NR_uname,
	__NR_sysinfo,
	__NR_rt_sigprocmask,
	__NR_rt_sigreturn,
	__NR_sigaltstack,
	__NR_restart_syscall,
	__NR_exit,
	__NR_exit_group,
	__NR_rseq,
	__NR_set_robust_list,
	__NR_getrlimit,
	__NR_prlimit64,
};

static const struct callfilter_narrow narrowed[] = {
	{__NR_socket, 0, ~0u, {AF_INET, AF_INET6}, 2},
	{__NR_mmap, 2, PROT_EXEC, {0}, 1},
	{__NR_mprotect, 2, PROT_EXEC, {0}, 1},
	{__NR_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, {O_RDONLY}, 1},
#ifdef __NR_open
	{__NR_open, 1, O_ACCMODE | O_CREAT | O_TRUNC, {O_RDONLY}, 1},
#endif
	{__NR_bpf, 0, ~0u,
		{BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM,
			BPF_OBJ_GET_INFO_BY_FD},
		4},
	/* abort() and the like: to itself, which is all that a signal without rights reaches */
	{__NR_tgkill, 2, ~0u, {SIGABRT}, 1},
};

static const struct callfilter filter = {
	.allowed = allowed,
	.n_allowed = sizeof(allowed) / sizeof(allowed[0]),
	.narrowed = narrowed,
	.n_narrowed = sizeof(narrowed) / sizeof(narrowed[0]),
};

static int die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

int confine_begin(struct err *err)
{
	pid_t parent = getppid();

	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return err_set(err, -errno, "hide memory: %m");
	if (parent == 1 || die_with(parent) < 0)
		return err_set(err, -ESRCH, "whoever started this is gone");
	return 0;
}

int confine_enter(uid_t uid, struct err *err)
{
	pid_t parent = getppid();
	int r;

	/* From root to another uid all capabilities go; libc does it for all threads. */
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_set(err, -errno, "become uid %u: %m", uid);
	if (setresuid((uid_t)-1, 0, (uid_t)-1) == 0)
		return err_set(err, -EPERM, "uid 0 could be taken back");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return err_set(err, -errno, "give up new rights: %m");
	r = die_with(parent); /* the change of uid took it back */
	if (r < 0)
		return err_set(err, r, "die with the supervisor: %m");
	r = callfilter_set(&filter);
	return r < 0 ? err_set(err, r, "set the filter of system calls: %m") : 0;
}
