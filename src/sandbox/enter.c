/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/caps.h"
#include "sandbox/rawcall.h"
#include "util/clock.h"

#define LOW_FD         10 /* above the three the program gets */
#define NOT_FOUND      127
#define FIRST_SLICE_MS 2 /* a child that may run says so within this */
#define LAST_SIGNAL    64
#define ALL_BUT_USER \
	(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define CLEAR_SIGHAND 0x100000000ULL

/* Code of the helper and the child: no sanitizer's bookkeeping, no frame of the caller's. */
#define ALONE __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static void say_started(struct enter *e)
{
	__atomic_store_n(&e->started, 1, __ATOMIC_RELEASE);
	(void)rawcall(__NR_futex, &e->started, FUTEX_WAKE_PRIVATE, 1);
}

static ALONE __attribute__((noreturn)) void fail(
	const struct enter *e, long r, enum enter_step step)
{
	struct enter_status status = {.errnum = (int)-r, .step = (int)step};

	(void)rawcall(__NR_write, e->status_fd, &status, sizeof(status));
	for (;;)
		(void)rawcall(__NR_exit_group, NOT_FOUND);
}

static ALONE void join_limits(const struct enter *e)
{
	for (int i = 0; i < ENTER_MAX_JOINS; i++) {
		long r = e->join_fds[i] < 0 ? 0 : rawcall(__NR_write, e->join_fds[i], "0", 1);

		if (r < 0)
			fail(e, r, ENTER_LIMITS);
	}
}

/* First out of the way of 0, 1 and 2, then onto them. */
static ALONE void take_descriptors(const struct enter *e)
{
	long fds[3], r = 0;

	for (int i = 0; i < 3; i++) {
		fds[i] = rawcall(__NR_fcntl, e->fds[i], 0 /* F_DUPFD */, LOW_FD);
		if (fds[i] < 0)
			fail(e, fds[i], ENTER_DESCRIPTORS);
	}
	for (int i = 0; r >= 0 && i < 3; i++)
		r = rawcall(__NR_dup2, fds[i], i);
	/* Everything else goes when the program starts, the status pipe among it: its end is the good news. */
	if (r >= 0)
		r = rawcall(__NR_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
	if (r < 0)
		fail(e, r, ENTER_DESCRIPTORS);
	if (!e->has_terminal)
		return;
	r = rawcall(__NR_ioctl, 0, TIOCSCTTY, 0);
	if (r < 0)
		fail(e, r, ENTER_TERMINAL);
}

static ALONE void become_user(const struct enter *e)
{
	long r = rawcall(__NR_setgroups, e->n_groups, e->groups);

	if (r == 0)
		r = rawcall(__NR_setresgid, e->gid, e->gid, e->gid);
	if (r == 0)
		r = rawcall(__NR_setresuid, e->uid, e->uid, e->uid);
	if (r < 0)
		fail(e, r, ENTER_USER);
	r = rawcall(__NR_chdir, e->cwd);
	if (r < 0)
		fail(e, r, ENTER_CWD);
}

/* Handlers are gone by CLONE_CLEAR_SIGHAND; what the supervisor ignores would stay ignored. */
static ALONE void reset_signals(const struct enter *e)
{
	struct kernel_action fallback = {0};
	unsigned long none = 0;

	for (int i = 1; i <= LAST_SIGNAL; i++)
		(void)rawcall(__NR_rt_sigaction, i, &fallback, 0,
			sizeof(none)); /* KILL and STOP refuse */
	(void)rawcall(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
}

static ALONE void drop_rights(const struct enter *e)
{
	/* 1 and not 0: with that a crash does not start the host's core handler either (core(5)). */
	struct rlimit no_core = {.rlim_cur = 1, .rlim_max = 1};
	long r = caps_bound();

	(void)rawcall(__NR_umask, 022);
	if (r == 0)
		r = rawcall(__NR_prlimit64, 0, RLIMIT_CORE, &no_core, 0);
	if (r == 0)
		r = rawcall(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r < 0)
		fail(e, r, ENTER_RIGHTS);
	reset_signals(e);
	r = rawcall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &e->filter);
	if (r < 0)
		fail(e, r, ENTER_RIGHTS);
}

/* As a shell looks through PATH: what is there but may not be run is told only if nothing better comes. */
static ALONE __attribute__((noreturn)) void execute(const struct enter *e)
{
	long r = -ENOENT, denied = 0;

	if (e->program_fd >= 0) {
		r = rawcall(__NR_execveat, e->program_fd, "", e->argv, e->env, AT_EMPTY_PATH);
		fail(e, r, ENTER_EXECVE);
	}
	for (const char *const *p = e->programs; *p; p++) {
		/* Looked at before it is run, so that no failed start is recorded for each folder of PATH. */
		if (p[1] && rawcall(__NR_access, *p, X_OK) < 0 &&
			rawcall(__NR_access, *p, F_OK) < 0)
			continue;
		r = rawcall(__NR_execve, *p, e->argv, e->env);
		if (r == -EACCES)
			denied = r;
		else if (r != -ENOENT && r != -ENOTDIR)
			break;
	}
	fail(e, denied && (r == -ENOENT || r == -ENOTDIR) ? denied : r, ENTER_EXECVE);
}

static ALONE __attribute__((noreturn, used)) void enter_child(struct enter *e)
{
	long r;

	say_started(e);
	join_limits(e);
	r = rawcall(__NR_setns, e->init_pidfd, CLONE_NEWUSER);
	if (r < 0)
		fail(e, r, ENTER_NAMESPACES);
	(void)rawcall(__NR_setsid);
	take_descriptors(e);
	become_user(e);
	drop_rights(e);
	execute(e);
}

/* Returns in the parent only: the child starts on an empty stack and calls from there. */
static ALONE long clone_child(struct enter *e, struct clone_args *args)
{
	long r;
	register struct enter *arg __asm__("r12") = e;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r12, %%rdi\n\t"
			 "call *%[run]\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(r)
			 : "a"((long)__NR_clone3), "D"(args), "S"(sizeof(*args)),
			 "r"(arg), [run] "r"(enter_child)
			 : "rcx", "r11", "memory");
	return r;
}

static ALONE __attribute__((noreturn, used)) void enter_helper(struct enter *e)
{
	struct clone_args args = {0};
	long r = rawcall(__NR_setns, e->init_pidfd, ALL_BUT_USER);

	args.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_PARENT_SETTID |
	             CLONE_INTO_CGROUP | CLEAR_SIGHAND;
	args.pidfd = (uintptr_t)&e->pidfd;
	args.parent_tid = (uintptr_t)&e->pid;
	args.exit_signal = SIGCHLD;
	args.stack = (uintptr_t)e->child_stack_top - ENTER_STACK_SIZE;
	args.stack_size = ENTER_STACK_SIZE;
	args.cgroup = (uint64_t)e->cgroup_fd;
	if (r == 0)
		r = clone_child(e, &args);
	if (r < 0) {
		e->clone_r = (int)r;
		say_started(e);
	}
	for (;;)
		(void)rawcall(__NR_exit, 0);
}

int enter_start(struct enter *e, void *helper_stack_top)
{
	/* Not CLONE_FS: root and current folder change with the mount namespace. */
	unsigned long flags = CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
	                      CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	int *tid = &e->helper;
	register struct enter *arg __asm__("r12") = e;
	register int *tid_at __asm__("r10") = tid;
	long r;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r12, %%rdi\n\t"
			 "call *%[run]\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(r)
			 : "a"((long)__NR_clone), "D"(flags), "S"(helper_stack_top),
			 "d"(&e->helper), "r"(tid_at), "r"(arg), [run] "r"(enter_helper)
			 : "rcx", "r11", "r8", "memory");
	return r < 0 ? (int)r : 0;
}

static bool is_known(const struct enter *e)
{
	return __atomic_load_n(&e->pid, __ATOMIC_ACQUIRE) != 0 ||
	       __atomic_load_n(&e->clone_r, __ATOMIC_ACQUIRE) != 0;
}

int enter_wait_pid(struct enter *e, int max_ms)
{
	int64_t deadline_ns = clock_mono_ns() + max_ms * CLOCK_NS_PER_MS;
	struct timespec slice = {.tv_nsec = FIRST_SLICE_MS * CLOCK_NS_PER_MS};

	/* The kernel writes the pid without waking anybody; a child that is frozen at birth never says started. */
	while (!__atomic_load_n(&e->started, __ATOMIC_ACQUIRE)) {
		(void)syscall(SYS_futex, &e->started, FUTEX_WAIT_PRIVATE, 0, &slice, NULL, 0);
		if (is_known(e))
			break;
		if (clock_mono_ns() > deadline_ns)
			return -ETIMEDOUT;
	}
	return e->clone_r;
}

void enter_wait_helper(struct enter *e)
{
	int tid;

	while ((tid = __atomic_load_n(&e->helper, __ATOMIC_ACQUIRE)) != 0)
		(void)syscall(SYS_futex, &e->helper, FUTEX_WAIT, tid, NULL, NULL, 0);
}
