/* SPDX-License-Identifier: Apache-2.0 */
/* The calls: what the loop, the workers, SQLite, libpq, libcurl and libc under them make once they have begun. None that starts
 * a program, traces or signals another process, mounts, makes a namespace, listens, gives a right, or maps memory that
 * can be run; threads, but no processes (clone3 cannot be looked into, so libc is told that there is none and takes
 * clone). What is not there fails with ENOSYS: a library that probes goes on. */
#include "server/walls.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/callfilter.h"
#include "util/mem.h"
#include "util/scoped.h"

/* ---- files ---- */

#define IN_FILES \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | \
		LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define NOWHERE \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
		LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | \
		LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | \
		LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define TRUNCATE     (1ULL << 14) /* LANDLOCK_ACCESS_FS_TRUNCATE, of Linux 6.2 */
#define HAS_TRUNCATE 3            /* the version that knows it */

/* A place that is not there, or not for us, is opened for nothing later either: whoever wants it says so then. */
static int allow(int rules, const char *path, uint64_t what)
{
	scoped_fd int fd = open(path, O_PATH | O_CLOEXEC);
	const struct landlock_path_beneath_attr beneath = {.allowed_access = what, .parent_fd = fd};

	if (fd < 0)
		return 0;
	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0
	               ? -errno
	               : 0;
}

/* The folder of a database in a file; the caller's. NULL: it is in none. */
static char *folder_of(const char *place)
{
	const char *path = strncmp(place, "sqlite:", 7) == 0 ? place + 7 : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!path)
		return NULL;
	return slash ? mem_copy(path, (size_t)(slash - path) + 1) : mem_dup(".");
}

static int wall_in(int rules, const char *state_dir, const char *place, uint64_t in_files)
{
	scoped_mem char *own = mem_printf("%s/server", state_dir);
	scoped_mem char *database = folder_of(place);
	int r = allow(rules, own, in_files);

	if (r == 0 && database)
		r = allow(rules, database, in_files);
	if (r == 0)
		r = allow(rules, "/dev/null",
			in_files & ~(uint64_t)(LANDLOCK_ACCESS_FS_MAKE_REG |
					       LANDLOCK_ACCESS_FS_REMOVE_FILE));
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = -errno;
	return r;
}

static int wall_files(const char *state_dir, const char *place, struct err *err)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = IN_FILES | NOWHERE};
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t in_files = IN_FILES | (version >= HAS_TRUNCATE ? TRUNCATE : 0);
	scoped_fd int rules = -1;
	int r;

	if (version < 0)
		return 0;
	attr.handled_access_fs |= in_files;
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	r = rules < 0 ? -errno : wall_in(rules, state_dir, place, in_files);
	return r < 0 ? err_set(err, r, "give up writing elsewhere: %m") : 0;
}

int walls_begin(const char *state_dir, const char *place, struct err *err)
{
	const struct rlimit none = {0};

	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, -errno, "hide memory: %m");
	return wall_files(state_dir, place, err);
}

/* ---- calls ---- */

static const int allowed[] = {
	__NR_read,
	__NR_write,
	__NR_readv,
	__NR_writev,
	__NR_pread64,
	__NR_pwrite64,
	__NR_close,
	__NR_close_range,
	__NR_dup,
	__NR_dup3,
	__NR_fcntl,
	__NR_lseek,
	__NR_openat,
	__NR_fstat,
	__NR_newfstatat,
	__NR_statx,
	__NR_fstatfs,
	__NR_statfs,
	__NR_getdents64,
	__NR_faccessat,
	__NR_faccessat2,
	__NR_readlinkat,
	__NR_unlinkat,
	__NR_ftruncate,
	__NR_fallocate,
	__NR_fsync,
	__NR_fdatasync,
	__NR_getcwd,
	__NR_inotify_add_watch,
	__NR_inotify_rm_watch,
#ifdef __NR_stat
	__NR_open,
	__NR_stat,
	__NR_lstat,
	__NR_access,
	__NR_readlink,
	__NR_unlink,
	__NR_dup2,
	__NR_poll,
	__NR_epoll_wait,
	__NR_time,
	__NR_getrlimit,
#endif
	__NR_ppoll,
	__NR_pselect6,
	__NR_epoll_create1,
	__NR_epoll_ctl,
	__NR_epoll_pwait,
	__NR_eventfd2,
	__NR_pipe2,
	__NR_accept4,
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
	__NR_brk,
	__NR_munmap,
	__NR_mremap,
	__NR_madvise,
	__NR_futex,
	__NR_sched_yield,
	__NR_sched_getaffinity,
	__NR_getcpu,
	__NR_clock_gettime,
	__NR_clock_getres,
	__NR_clock_nanosleep,
	__NR_nanosleep,
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
	__NR_rt_sigaction,
	__NR_rt_sigprocmask,
	__NR_rt_sigpending,
	__NR_rt_sigtimedwait,
	__NR_rt_sigreturn,
	__NR_sigaltstack,
	__NR_restart_syscall,
	__NR_exit,
	__NR_exit_group,
	__NR_rseq,
	__NR_set_robust_list,
};

#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

/* A database in a file is reached by no socket. */
static const struct callfilter_narrow families[] = {
	{__NR_socket, 0, ~0u, {AF_INET, AF_INET6}, 2},
	{__NR_socket, 0, ~0u, {AF_INET, AF_INET6, AF_UNIX}, 3},
};

static const struct callfilter_narrow narrowed[] = {
	{__NR_socketpair, 0, ~0u, {AF_UNIX}, 1},
	{__NR_ioctl, 1, ~0u, {FIONREAD, FIONBIO, TCGETS}, 3},
	{__NR_mmap, 2, PROT_EXEC, {0}, 1},
	{__NR_mprotect, 2, PROT_EXEC, {0}, 1},
	{__NR_clone, 0, THREAD | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET,
		{THREAD}, 1},
	{__NR_prctl, 0, ~0u, {PR_SET_NAME}, 1}, /* of a thread */
	{__NR_prlimit64, 2, ~0u, {0}, 1},       /* asked, not set */
	/* abort() and the like: to itself, which is all that a signal without rights reaches */
	{__NR_tgkill, 2, ~0u, {SIGABRT}, 1},
};
#define N_NARROWED (sizeof(narrowed) / sizeof(narrowed[0]))

int walls_close(const char *place, struct err *err)
{
	struct callfilter_narrow all[N_NARROWED + 1];
	const struct callfilter filter = {.allowed = allowed,
		.n_allowed = sizeof(allowed) / sizeof(allowed[0]),
		.narrowed = all,
		.n_narrowed = N_NARROWED + 1};
	bool is_file = strncmp(place, "sqlite:", 7) == 0;
	int r;

	memcpy(all, narrowed, sizeof(narrowed));
	all[N_NARROWED] = families[is_file ? 0 : 1];
#if defined(__SANITIZE_ADDRESS__) /* which looks for leaks by a process that traces this one */
	(void)filter;
	r = 0;
#else
	r = callfilter_set(&filter);
#endif
	return r < 0 ? err_set(err, r, "set the filter of system calls: %m") : 0;
}
