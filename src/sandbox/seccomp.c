/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: what the table allows; EPERM for what a root user would know as a matter of rights; ENOSYS for what
 * programs probe for and do without, and for every call younger than this list, so that they fall back.
 * Another gate than the 64-bit one (int 0x80, x32) ends the process: its numbers mean other calls.
 *
 * Arguments that the kernel takes as int are compared by their low half, as the kernel does. */
#include "sandbox/seccomp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define N_CALLS 480
#define X32_BIT 0x40000000u
#define SET_ID  (S_ISUID | S_ISGID)
#define NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
		CLONE_NEWCGROUP)
#define TIOCCONS_CMD      0x541du
#define TIOCLINUX_CMD     0x541cu
#define O_TMPFILE_BIT     020000000u
#define CLONE_NEWTIME_BIT 0x80

/* What is done with a call number. */
enum verdict {
	UNKNOWN, /* ENOSYS */
	ALLOW,
	DENY, /* EPERM */
	CLONE,
	UNSHARE,
	SOCKET,
	SOCKETPAIR,
	IOCTL,
	PERSONALITY,
	MODE_1, /* a file mode in argument 1 must not hold a set-id bit; and so on */
	MODE_2,
	MKNOD_1,
	MKNOD_2,
	OPEN_1, /* flags in argument 1, mode in 2 */
	OPEN_2,
};

#define A(name) __NR_##name
/* clang-format off */
static const short allowed[] = {
	A(read), A(write), A(open), A(close), A(stat), A(fstat), A(lstat), A(poll), A(lseek),
	A(mmap), A(mprotect), A(munmap), A(brk), A(rt_sigaction), A(rt_sigprocmask),
	A(rt_sigreturn), A(pread64), A(pwrite64), A(readv), A(writev), A(access), A(pipe),
	A(select), A(sched_yield), A(mremap), A(msync), A(mincore), A(madvise), A(shmget),
	A(shmat), A(shmctl), A(dup), A(dup2), A(pause), A(nanosleep), A(getitimer), A(alarm),
	A(setitimer), A(getpid), A(sendfile), A(connect), A(accept), A(sendto), A(recvfrom),
	A(sendmsg), A(recvmsg), A(shutdown), A(bind), A(listen), A(getsockname), A(getpeername),
	A(setsockopt), A(getsockopt), A(fork), A(vfork), A(execve), A(exit), A(wait4), A(kill),
	A(uname), A(semget), A(semop), A(semctl), A(shmdt), A(msgget), A(msgsnd), A(msgrcv),
	A(msgctl), A(fcntl), A(flock), A(fsync), A(fdatasync), A(truncate), A(ftruncate),
	A(getdents), A(getcwd), A(chdir), A(fchdir), A(rename), A(mkdir), A(rmdir), A(creat),
	A(link), A(unlink), A(symlink), A(readlink), A(chmod), A(fchmod), A(chown), A(fchown),
	A(lchown), A(umask), A(gettimeofday), A(getrlimit), A(getrusage), A(sysinfo), A(times),
	A(ptrace), A(getuid), A(getgid), A(setuid), A(setgid), A(geteuid), A(getegid), A(setpgid),
	A(getppid), A(getpgrp), A(setsid), A(setreuid), A(setregid), A(getgroups), A(setgroups),
	A(setresuid), A(getresuid), A(setresgid), A(getresgid), A(getpgid), A(setfsuid),
	A(setfsgid), A(getsid), A(capget), A(capset), A(rt_sigpending), A(rt_sigtimedwait),
	A(rt_sigqueueinfo), A(rt_sigsuspend), A(sigaltstack), A(utime), A(statfs), A(fstatfs),
	A(getpriority), A(setpriority), A(sched_setparam), A(sched_getparam),
	A(sched_setscheduler), A(sched_getscheduler), A(sched_get_priority_max),
	A(sched_get_priority_min), A(sched_rr_get_interval), A(mlock), A(munlock), A(mlockall),
	A(munlockall), A(prctl), A(arch_prctl), A(setrlimit), A(chroot), A(sync), A(gettid),
	A(readahead), A(setxattr), A(lsetxattr), A(fsetxattr), A(getxattr), A(lgetxattr),
	A(fgetxattr), A(listxattr), A(llistxattr), A(flistxattr), A(removexattr), A(lremovexattr),
	A(fremovexattr), A(tkill), A(time), A(futex), A(sched_setaffinity), A(sched_getaffinity),
	A(io_setup), A(io_destroy), A(io_getevents), A(io_submit), A(io_cancel), A(epoll_create),
	A(remap_file_pages), A(getdents64), A(set_tid_address), A(restart_syscall), A(semtimedop),
	A(fadvise64), A(timer_create), A(timer_settime), A(timer_gettime), A(timer_getoverrun),
	A(timer_delete), A(clock_gettime), A(clock_getres), A(clock_nanosleep), A(exit_group),
	A(epoll_wait), A(epoll_ctl), A(tgkill), A(utimes), A(mbind), A(set_mempolicy),
	A(get_mempolicy), A(mq_open), A(mq_unlink), A(mq_timedsend), A(mq_timedreceive),
	A(mq_notify), A(mq_getsetattr), A(waitid), A(ioprio_set), A(ioprio_get), A(inotify_init),
	A(inotify_add_watch), A(inotify_rm_watch), A(openat), A(mkdirat), A(fchownat),
	A(futimesat), A(newfstatat), A(unlinkat), A(renameat), A(linkat), A(symlinkat),
	A(readlinkat), A(fchmodat), A(faccessat), A(pselect6), A(ppoll), A(set_robust_list),
	A(get_robust_list), A(splice), A(tee), A(sync_file_range), A(vmsplice), A(utimensat),
	A(epoll_pwait), A(signalfd), A(timerfd_create), A(eventfd), A(fallocate),
	A(timerfd_settime), A(timerfd_gettime), A(accept4), A(signalfd4), A(eventfd2),
	A(epoll_create1), A(dup3), A(pipe2), A(inotify_init1), A(preadv), A(pwritev),
	A(rt_tgsigqueueinfo), A(recvmmsg), A(prlimit64), A(name_to_handle_at), A(syncfs),
	A(sendmmsg), A(getcpu), A(process_vm_readv), A(process_vm_writev), A(sched_setattr),
	A(sched_getattr), A(renameat2), A(seccomp), A(getrandom), A(memfd_create), A(execveat),
	A(membarrier), A(mlock2), A(copy_file_range), A(preadv2), A(pwritev2), A(pkey_mprotect),
	A(pkey_alloc), A(pkey_free), A(statx), A(io_pgetevents), A(rseq), A(pidfd_send_signal),
	A(pidfd_open), A(close_range), A(openat2), A(pidfd_getfd), A(faccessat2),
	A(process_madvise), A(epoll_pwait2), A(landlock_create_ruleset), A(landlock_add_rule),
	A(landlock_restrict_self), A(process_mrelease), A(futex_waitv), A(set_mempolicy_home_node),
};
/* Programs that probe for these are told so by the kernel's own answer to a user without the right. */
static const short denied[] = {
	A(acct), A(add_key), A(bpf), A(clock_adjtime), A(clock_settime), A(adjtimex),
	A(create_module), A(delete_module), A(fanotify_init), A(fanotify_mark), A(finit_module),
	A(fsconfig), A(fsmount), A(fsopen), A(fspick), A(get_kernel_syms), A(init_module),
	A(ioperm), A(iopl), A(kcmp), A(kexec_file_load), A(kexec_load), A(keyctl),
	A(lookup_dcookie), A(migrate_pages), A(mount), A(mount_setattr), A(move_mount),
	A(move_pages), A(nfsservctl), A(open_by_handle_at), A(open_tree), A(perf_event_open),
	A(pivot_root), A(query_module), A(quotactl), A(quotactl_fd), A(reboot), A(request_key),
	A(setdomainname), A(sethostname), A(setns), A(settimeofday), A(swapoff), A(swapon),
	A(syslog), A(umount2), A(userfaultfd), A(uselib), A(vhangup),
};
/* clang-format on */

struct special {
	short nr;
	unsigned char verdict;
};

static const struct special specials[] = {
	{A(clone), CLONE},
	{A(unshare), UNSHARE},
	{A(socket), SOCKET},
	{A(socketpair), SOCKETPAIR},
	{A(ioctl), IOCTL},
	{A(personality), PERSONALITY},
	{A(mknod), MKNOD_1},
	{A(mknodat), MKNOD_2},
};

/* With no_set_id. openat2 hides flags and mode in memory that a filter cannot read. */
static const struct special no_set_ids[] = {
	{A(chmod), MODE_1},
	{A(fchmod), MODE_1},
	{A(fchmodat), MODE_2},
	{A(creat), MODE_1},
	{A(open), OPEN_1},
	{A(openat), OPEN_2},
	{A(openat2), UNKNOWN},
};

struct range {
	uint32_t first;
	enum verdict verdict;
};

/* Writes a program front to back. */
struct emitter {
	struct sock_filter *code;
	size_t len;
	bool no_set_id;
};

static void emit(struct emitter *e, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	assert(e->len < SECCOMP_MAX_LEN);
	e->code[e->len++] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

static void emit_return(struct emitter *e, uint32_t action)
{
	emit(e, BPF_RET | BPF_K, action, 0, 0);
}

static void emit_errno(struct emitter *e, int errnum)
{
	emit_return(e, SECCOMP_RET_ERRNO | (uint32_t)errnum);
}

/* Loads the low half of an argument (little endian). */
static void emit_load(struct emitter *e, unsigned arg)
{
	emit(e, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg),
		0, 0);
}

/* Answers errnum where any of the bits is set in what was loaded. */
static void emit_refuse_bits(struct emitter *e, uint32_t bits, int errnum)
{
	emit(e, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
	emit_errno(e, errnum);
}

/* Answers action where what was loaded equals v. */
static void emit_if_equal(struct emitter *e, uint32_t v, uint32_t action)
{
	emit(e, BPF_JMP | BPF_JEQ | BPF_K, v, 0, 1);
	emit_return(e, action);
}

static void emit_no_bits(struct emitter *e, unsigned arg, uint32_t bits)
{
	emit_load(e, arg);
	emit_refuse_bits(e, bits, EPERM);
	emit_return(e, SECCOMP_RET_ALLOW);
}

static const uint32_t inet_protocols[] = {0, 1 /* ICMP, for ping without rights */, 6, 17};
static const uint32_t inet6_protocols[] = {0, 6, 17, 58};

/* The family matched jumps over nothing: its protocols are checked, else the next family is tried. */
static void emit_family(struct emitter *e, uint32_t family, const uint32_t *protocols, size_t n)
{
	emit(e, BPF_JMP | BPF_JEQ | BPF_K, family, 0, (uint8_t)(2 * n + 2));
	emit_load(e, 2);
	for (size_t i = 0; i < n; i++)
		emit_if_equal(e, protocols[i], SECCOMP_RET_ALLOW);
	emit_errno(e, EPROTONOSUPPORT);
}

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

/* Unix sockets, TCP, UDP and ping, and the netlink that tells one's own addresses. */
static void emit_socket(struct emitter *e)
{
	static const uint32_t route_only[] = {0};

	emit_load(e, 0);
	emit_if_equal(e, AF_UNIX, SECCOMP_RET_ALLOW);
	emit_family(e, AF_INET, inet_protocols, LEN(inet_protocols));
	emit_family(e, AF_INET6, inet6_protocols, LEN(inet6_protocols));
	emit_family(e, AF_NETLINK, route_only, LEN(route_only));
	emit_errno(e, EAFNOSUPPORT);
}

static void emit_ioctl(struct emitter *e)
{
	static const uint32_t typing[] = {TIOCSTI, TIOCLINUX_CMD, TIOCCONS_CMD};

	emit_load(e, 1);
	for (size_t i = 0; i < LEN(typing); i++)
		emit_if_equal(e, typing[i], SECCOMP_RET_ERRNO | EPERM);
	emit_return(e, SECCOMP_RET_ALLOW);
}

/* Asking, Linux as it is, uname in old form, addresses not shuffled (gdb). */
static void emit_personality(struct emitter *e)
{
	static const uint32_t known[] = {0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff};

	emit_load(e, 0);
	for (size_t i = 0; i < LEN(known); i++)
		emit_if_equal(e, known[i], SECCOMP_RET_ALLOW);
	emit_errno(e, EPERM);
}

/* Devices: the kernel refuses real ones, but not the 0/0 that overlays take for "deleted". */
static void emit_mknod(struct emitter *e, unsigned arg)
{
	emit_load(e, arg);
	if (e->no_set_id)
		emit_refuse_bits(e, SET_ID, EPERM);
	emit(e, BPF_ALU | BPF_AND | BPF_K, S_IFMT, 0, 0);
	emit_if_equal(e, S_IFCHR, SECCOMP_RET_ERRNO | EPERM);
	emit_if_equal(e, S_IFBLK, SECCOMP_RET_ERRNO | EPERM);
	emit_return(e, SECCOMP_RET_ALLOW);
}

/* A mode counts only where the call may make a file. */
static void emit_open(struct emitter *e, unsigned flags_arg)
{
	emit_load(e, flags_arg);
	emit(e, BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TMPFILE_BIT, 1, 0);
	emit_return(e, SECCOMP_RET_ALLOW);
	emit_no_bits(e, flags_arg + 1, SET_ID);
}

static void emit_verdict(struct emitter *e, enum verdict verdict)
{
	switch (verdict) {
	case UNKNOWN:
		emit_errno(e, ENOSYS);
		return;
	case ALLOW:
		emit_return(e, SECCOMP_RET_ALLOW);
		return;
	case DENY:
		emit_errno(e, EPERM);
		return;
	case CLONE:
		emit_no_bits(e, 0, NAMESPACES);
		return;
	case UNSHARE:
		emit_no_bits(e, 0, NAMESPACES | CLONE_NEWTIME_BIT);
		return;
	case SOCKET:
		emit_socket(e);
		return;
	case SOCKETPAIR:
		emit_load(e, 0);
		emit_if_equal(e, AF_UNIX, SECCOMP_RET_ALLOW);
		emit_errno(e, EAFNOSUPPORT);
		return;
	case IOCTL:
		emit_ioctl(e);
		return;
	case PERSONALITY:
		emit_personality(e);
		return;
	case MODE_1:
	case MODE_2:
		emit_no_bits(e, verdict == MODE_1 ? 1 : 2, SET_ID);
		return;
	case MKNOD_1:
	case MKNOD_2:
		emit_mknod(e, verdict == MKNOD_1 ? 1 : 2);
		return;
	case OPEN_1:
	case OPEN_2:
		emit_open(e, verdict == OPEN_1 ? 1 : 2);
		return;
	}
}

/* The accumulator holds the call number; ranges lo to hi (exclusive) are left. */
static void emit_search(struct emitter *e, const struct range *ranges, size_t lo, size_t hi)
{
	size_t mid = (lo + hi) / 2, at;

	if (hi - lo == 1) {
		emit_verdict(e, ranges[lo].verdict);
		return;
	}
	at = e->len;
	/* Below the middle one instruction on, else over what is written next: a jump that may be long. */
	emit(e, BPF_JMP | BPF_JGE | BPF_K, ranges[mid].first, 0, 1);
	emit(e, BPF_JMP | BPF_JA, 0, 0, 0);
	emit_search(e, ranges, lo, mid);
	e->code[at + 1].k = (uint32_t)(e->len - at - 2);
	emit_search(e, ranges, mid, hi);
}

static size_t make_ranges(bool no_set_id, struct range ranges[N_CALLS])
{
	unsigned char verdicts[N_CALLS] = {UNKNOWN};
	size_t n = 0;

	for (size_t i = 0; i < LEN(allowed); i++)
		verdicts[allowed[i]] = ALLOW;
	for (size_t i = 0; i < LEN(denied); i++)
		verdicts[denied[i]] = DENY;
	for (size_t i = 0; i < LEN(specials); i++)
		verdicts[specials[i].nr] = specials[i].verdict;
	for (size_t i = 0; no_set_id && i < LEN(no_set_ids); i++)
		verdicts[no_set_ids[i].nr] = no_set_ids[i].verdict;
	ranges[n++] = (struct range){.first = 0, .verdict = verdicts[0]};
	for (uint32_t nr = 1; nr < N_CALLS; nr++)
		if (ranges[n - 1].verdict != verdicts[nr])
			ranges[n++] = (struct range){.first = nr, .verdict = verdicts[nr]};
	return n;
}

void seccomp_build(struct seccomp_program *program, bool no_set_id)
{
	struct range ranges[N_CALLS];
	size_t n = make_ranges(no_set_id, ranges);
	struct emitter e = {.code = program->code, .no_set_id = no_set_id};

	emit(&e, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(&e, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	emit_return(&e, SECCOMP_RET_KILL_PROCESS);
	emit(&e, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	/* -1 is how a tracer skips a call. */
	emit_if_equal(&e, 0xffffffff, SECCOMP_RET_ERRNO | ENOSYS);
	emit(&e, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	emit_return(&e, SECCOMP_RET_KILL_PROCESS);
	emit_search(&e, ranges, 0, n);
	program->prog = (struct sock_fprog){.len = (unsigned short)e.len, .filter = program->code};
}
