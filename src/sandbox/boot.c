/* SPDX-License-Identifier: Apache-2.0 */
/* Order matters: what needs no map is done first, while the parent writes the maps and mounts the layers;
 * then ids; then the root is attached and entered, and only from there are further mount points looked up,
 * so that a link in a hostile root leads nowhere but into that root. Rights go last. */
#include "sandbox/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/caps.h"
#include "sandbox/kmount.h"
#include "util/path.h"
#include "util/scoped.h"

#define HOSTNAME    "sandbox"
#define TTY_GROUP   "5"
#define HIDE_FOLDER "/dev/.hide"
#define PATH_LEN    4096

static int raise_loopback(struct err *err)
{
	scoped_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &req) < 0)
		return err_set(err, -errno, "bring up the loopback interface: %m");
	return 0;
}

/* What needs neither ids nor mounts. */
static int prepare(struct err *err)
{
	umask(022);
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_set(err, -errno, "unshare the cgroup namespace: %m");
	if (sethostname(HOSTNAME, strlen(HOSTNAME)) < 0)
		return err_set(err, -errno, "set the host name: %m");
	return raise_loopback(err);
}

/* Not by libc's calls, which would wait for the parent's other threads: they are not here. */
static int become_root(struct err *err)
{
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
		syscall(SYS_setresuid, 0, 0, 0) < 0)
		return err_set(err, -errno, "become root inside: %m");
	return 0;
}

static int enter_root(int root_fd, struct err *err)
{
	int r = kmount_attach(root_fd, AT_FDCWD, "/");

	if (r < 0 || fchdir(root_fd) < 0)
		return err_set(err, r < 0 ? r : -errno, "attach the root filesystem: %m");
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_set(err, -errno, "pivot_root: %m");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_set(err, -errno, "leave the host's root: %m");
	return 0;
}

/* A mount point of ours: made where it is missing, refused where the root has a link in its place. */
static int attach_ours(int mount_fd, const char *path, struct err *err)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	scoped_fd int at = -1;
	int r;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make '%s' in the root filesystem: %m", path);
	at = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (at < 0)
		return err_set(err, -errno,
			"'%s' of the root filesystem is a link or no folder: %m", path);
	r = move_mount(mount_fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
	            ? -errno
	            : 0;
	return r < 0 ? err_set(err, r, "attach '%s': %m", path) : 0;
}

static int open_devpts(struct err *err)
{
	static const struct kmount_option options[] = {{"newinstance", NULL}, {"ptmxmode", "0666"},
		{"mode", "0620"}, {"gid", TTY_GROUP}, {NULL, NULL}};

	return kmount_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
}

static int mount_dev(const int *fds, int devpts_fd, struct err *err)
{
	int r = attach_ours(fds[BOOT_DEV], "/dev", err);

	if (r == 0)
		r = attach_ours(devpts_fd, "/dev/pts", err);
	if (r == 0)
		r = attach_ours(fds[BOOT_SHM], "/dev/shm", err);
	return r;
}

/* Covers path with a copy of the mount of from, with attrs. Not there is fine. */
static int cover(const char *path, const char *from, uint64_t attrs)
{
	struct mount_attr attr = {.attr_set = attrs};
	scoped_fd int fd = open_tree(AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (attrs && mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	if (move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

/* Made while the host's own proc can still be seen: the kernel asks for that. */
static int open_proc(struct err *err)
{
	static const struct kmount_option none[] = {{NULL, NULL}};

	return kmount_new(
		"proc", none, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
}

static int mount_proc(int proc_fd, struct err *err)
{
	static const char *const read_only[] = {
		"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"};
	static const char *const masked[] = {"/proc/kcore", "/proc/keys", "/proc/kmsg",
		"/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats"};
	int r = attach_ours(proc_fd, "/proc", err);

	for (size_t i = 0; r == 0 && i < sizeof(read_only) / sizeof(read_only[0]); i++) {
		r = cover(read_only[i], read_only[i], MOUNT_ATTR_RDONLY);
		if (r < 0)
			r = err_set(err, r, "make '%s' read-only: %m", read_only[i]);
	}
	for (size_t i = 0; r == 0 && i < sizeof(masked) / sizeof(masked[0]); i++) {
		r = cover(masked[i], "/dev/null", 0);
		if (r < 0)
			r = err_set(err, r, "mask '%s': %m", masked[i]);
	}
	return r;
}

/* Makes the folders above path, and path itself as a folder or an empty file. Links inside lead inside. */
static int make_mount_point(const char *path, bool is_folder)
{
	char part[PATH_LEN];
	int fd, r;

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	if (is_folder)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
	r = fd < 0 && errno != EACCES && errno != EROFS ? -errno
	                                                : 0; /* what is there already will do */
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int attach_failed(const struct boot_mount *m, int r, struct err *err)
{
	if (r == -EROFS)
		return err_set(err, r,
			"mount at '%s': nothing is there to mount it on, and what is mounted "
			"around it is read-only: make it there first",
			m->guest);
	if (r == -EACCES)
		return err_set(err, r,
			"mount at '%s': nothing is there to mount it on, and root inside may not "
			"make it in what is mounted around it: make it there first",
			m->guest);
	if (r == -ENOTDIR || r == -EINVAL || r == -EISDIR)
		return err_set(err, r,
			m->is_folder ? "mount at '%s': a file is there or on the way, and what is "
				       "mounted is a folder"
				     : "mount at '%s': a folder is there, or a file on the way, "
				       "and what is mounted is a file",
			m->guest);
	return err_set(err, r, "mount at '%s': %m", m->guest);
}

static int attach_mounts(const struct boot *boot, const int *fds, struct err *err)
{
	for (size_t i = 0; i < boot->n_mounts; i++) {
		const struct boot_mount *m = &boot->mounts[i];
		int r = make_mount_point(m->guest, m->is_folder);

		if (r == 0)
			r = kmount_attach(fds[i], AT_FDCWD, m->guest);
		if (r < 0)
			return attach_failed(m, r, err);
	}
	return 0;
}

static int hide(const struct boot_hide *h, int mount_fd, struct err *err)
{
	const char *source = h->is_folder ? HIDE_FOLDER "/folder" : HIDE_FOLDER "/file";
	scoped_fd int fd = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	/* A link that leads nowhere inside has nothing to hide. */
	if (fd < 0 || (move_mount(fd, "", mount_fd, h->path,
			       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) < 0 &&
			      errno != ENOENT && errno != ELOOP))
		return err_set(err, -errno, "hide '%s': %m", h->path);
	return 0;
}

static int attach_hides(
	const struct boot *boot, int source_fd, const int *mount_fds, struct err *err)
{
	int r;

	if (boot->n_hides == 0)
		return 0;
	r = attach_ours(source_fd, HIDE_FOLDER, err);
	for (size_t i = 0; r == 0 && i < boot->n_hides; i++)
		r = hide(&boot->hides[i], mount_fds[boot->hides[i].mount], err);
	if (r < 0)
		return r;
	if (umount2(HIDE_FOLDER, MNT_DETACH) < 0 || rmdir(HIDE_FOLDER) < 0)
		return err_set(err, -errno, "put '%s' away: %m", HIDE_FOLDER);
	return 0;
}

/* Descriptors are shared, so the end that writes stays open here too when the parent is killed: only its pidfd
 * tells. */
static void wait_for_parent(const struct boot *boot)
{
	struct pollfd p[] = {{.fd = boot->go_fd, .events = POLLIN},
		{.fd = boot->parent_pidfd, .events = POLLIN}};

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			_exit(1);
	if (!p[0].revents)
		_exit(1); /* nobody is left to give us anything */
}

/* The next n descriptors the parent has made. */
static void take_fds(const struct boot *boot, int *fds, size_t n)
{
	ssize_t got = 0;

	if (n == 0)
		return;
	wait_for_parent(boot);
	got = read(boot->go_fd, fds, n * sizeof(*fds));
	if (got != (ssize_t)(n * sizeof(*fds)))
		_exit(1); /* the parent failed and has the words */
}

static int attach_layers(const struct boot *boot, const int *fds, struct err *err)
{
	for (size_t i = 1; i < boot->n_layers; i++) {
		int r = attach_ours(fds[i - 1], boot->layers[i].guest, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* What programs take for granted and an unpacked root may lack. */
static int make_folders(const struct boot *boot, struct err *err)
{
	int r = 0;

	if (mkdir("/workspace", 0755) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make '/workspace': %m");
	if (mkdir("/tmp", 01777) == 0)
		r = chmod("/tmp", 01777) < 0 ? -errno : 0;
	if (r < 0)
		return err_set(err, r, "make '/tmp': %m");
	r = boot->workdir ? make_mount_point(boot->workdir, true) : 0;
	return r < 0 ? err_set(err, r, "make the working folder '%s' (-w names another): %m",
			       boot->workdir)
	             : 0;
}

/* The parent goes on making layers and mounts while the root is entered and /dev and /proc are put there. */
static int arrange(const struct boot *boot, int *fds, struct boot_report *report)
{
	struct err *err = &report->err;
	int *rest = fds + BOOT_REST, r;
	scoped_fd int proc_fd = -1;

	take_fds(boot, rest, 1);
	r = become_root(err);
	if (r < 0)
		return r;
	proc_fd = open_proc(err);
	report->devpts_fd = open_devpts(err);
	if (proc_fd < 0 || report->devpts_fd < 0)
		return -EPERM; /* the words are there */
	take_fds(boot, fds, BOOT_REST);
	r = enter_root(fds[BOOT_ROOT], err);
	if (r == 0)
		r = mount_dev(fds, report->devpts_fd, err);
	if (r == 0)
		r = mount_proc(proc_fd, err);
	if (r < 0)
		return r;
	take_fds(boot, rest, boot->n_layers - 1 + boot->n_mounts);
	r = attach_layers(boot, rest, err);
	if (r == 0)
		r = attach_mounts(boot, rest + boot->n_layers - 1, err);
	if (r == 0)
		r = attach_hides(boot, fds[BOOT_HIDE], rest + boot->n_layers - 1, err);
	return r < 0 ? r : make_folders(boot, err);
}

/* From here on descriptors are our own; nothing of the parent's stays. */
static int let_go(const struct boot *boot, struct err *err)
{
	int fd;

	if (unshare(CLONE_FILES) < 0)
		return err_set(err, -errno, "unshare descriptors: %m");
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "open '/dev/null': %m");
	for (int i = 0; i < 3; i++)
		if (dup2(fd, i) < 0)
			return err_set(err, -errno, "dup2: %m");
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return err_set(err, -errno, "close_range: %m");
	(void)setsid();
	(void)prctl(PR_SET_NAME, "init");
	return 0;
}

/* The kernel drops the death signal when ids change, so it is asked for after that; a parent that died
 * before is seen by its descriptor. */
static int tie_to_parent(const struct boot *boot, struct err *err)
{
	struct pollfd parent = {.fd = boot->parent_pidfd, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, -errno, "ask for the parent's death signal: %m");
	if (poll(&parent, 1, 0) != 0)
		return err_set(err, -ESRCH, "the supervisor is gone");
	return 0;
}

static int drop_rights(const struct boot *boot, struct err *err)
{
	int r = caps_drop_all();

	if (r < 0)
		return err_set(err, r, "drop capabilities: %m");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, -errno, "set no_new_privs: %m");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, boot->filter) < 0)
		return err_set(err, -errno, "load the seccomp filter: %m");
	return 0;
}

static void report(const struct boot *boot, const struct boot_report *what)
{
	if (write(boot->report_fd, what, sizeof(*what)) != (ssize_t)sizeof(*what))
		_exit(1); /* nobody listens */
}

static void reset_signals(void)
{
	struct sigaction fallback = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &fallback, NULL); /* KILL, STOP and libc's own refuse */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void boot_run(const struct boot *boot)
{
	struct boot_report done = {.devpts_fd = -1};
	int fds[BOOT_MAX_FDS];
	char *const argv[] = {(char[]){"init"}, NULL}, *const env[] = {NULL};
	int r = prepare(&done.err);

	if (r == 0)
		r = arrange(boot, fds, &done);
	if (r == 0)
		r = let_go(boot, &done.err);
	if (r == 0)
		r = drop_rights(boot, &done.err);
	if (r == 0)
		r = tie_to_parent(boot, &done.err);
	done.r = r;
	report(boot, &done);
	if (r < 0)
		_exit(1);
	reset_signals();
	(void)syscall(SYS_execveat, boot->init_fd, "", argv, env, AT_EMPTY_PATH);
	done.r = err_set(&done.err, -errno, "start process 1: %m");
	report(boot, &done);
	_exit(1);
}
