/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/idrange.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define PATH_LEN     64
#define READY_MAX_MS 10000 /* mounts on a busy disk */

static int write_maps(pid_t pid, uint32_t base)
{
	static const char *const which[] = {"uid_map", "gid_map"};
	char path[PATH_LEN], text[PATH_LEN];
	int r = 0;

	(void)snprintf(text, sizeof(text), "0 %u %u\n", base, IDRANGE_LEN);
	for (size_t i = 0; r == 0 && i < 2; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, which[i]);
		r = fdio_put(AT_FDCWD, path, text);
	}
	return r;
}

static int clone_first(struct ns *ns, int cgroup_fd)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
	                 CLONE_NEWUTS | CLONE_PIDFD | CLONE_INTO_CGROUP | CLONE_FILES,
		.pidfd = (uintptr_t)&ns->pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_fd,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	return pid < 0 ? -errno : (int)pid;
}

/* The child keeps signals blocked until it has become another program: our handlers are not for it. */
static int start(struct ns *ns, struct boot *boot, int cgroup_fd)
{
	sigset_t all, old;
	int pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone_first(ns, cgroup_fd);
	if (pid == 0)
		boot_run(boot);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static const char *hint_for(int r)
{
	if (r == -ENOSPC || r == -EUSERS)
		return ": raise the limits in /proc/sys/user/max_*_namespaces";
	if (r == -EPERM)
		return ": needs root, and user namespaces allowed "
		       "(kernel.unprivileged_userns_clone)";
	return "";
}

static void close_pair(int pair[2])
{
	scoped_close(&pair[0]);
	scoped_close(&pair[1]);
	pair[0] = pair[1] = -1;
}

int ns_open(struct ns *ns, struct boot *boot, int cgroup_fd, uint32_t base, struct err *err)
{
	char path[PATH_LEN];
	int mapped = 0, r;

	*ns = (struct ns){.pidfd = -1, .userns_fd = -1, .go = {-1, -1}, .report = {-1, -1}};
	if (pipe2(ns->go, O_CLOEXEC) < 0 || pipe2(ns->report, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make a pipe: %m");
	boot->go_fd = ns->go[0];
	boot->report_fd = ns->report[1];
	r = start(ns, boot, cgroup_fd);
	if (r < 0)
		return err_set(err, r, "make namespaces: %m%s", hint_for(r));
	ns->pid = r;
	r = write_maps(ns->pid, base);
	if (r < 0)
		return err_set(err, r, "map ids %u to %u: %m", base, base + IDRANGE_LEN - 1);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", ns->pid);
	ns->userns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns->userns_fd < 0)
		return err_set(err, -errno, "open the user namespace: %m");
	return ns_send(ns, &mapped, 1, err);
}

/* One report, or the end of it: 1 and 0. The write end is shared with the child at first, so that its death
 * shows only at its pidfd. */
static int read_report(const struct ns *ns, struct boot_report *ret_report, struct err *err)
{
	struct pollfd fds[] = {
		{.fd = ns->report[0], .events = POLLIN}, {.fd = ns->pidfd, .events = POLLIN}};
	ssize_t n;

	do
		n = poll(fds, 2, READY_MAX_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return err_set(err, -ETIMEDOUT, "process 1 was not ready within %d s",
			READY_MAX_MS / 1000);
	if (!fds[0].revents)
		return err_set(err, -ECHILD, "process 1 ended before it was ready");
	n = read(ns->report[0], ret_report, sizeof(*ret_report));
	if (n == 0)
		return 0;
	return n == (ssize_t)sizeof(*ret_report)
	               ? 1
	               : err_set(err, -EIO, "process 1 sent half a report");
}

int ns_send(struct ns *ns, const int *fds, size_t n, struct err *err)
{
	size_t len = n * sizeof(*fds);

	if (n > 0 && write(ns->go[1], fds, len) != (ssize_t)len)
		return err_set(err, -errno, "tell process 1 its mounts: %m");
	return 0;
}

int ns_wait(struct ns *ns, int *ret_devpts_fd, struct err *err)
{
	struct boot_report report = {0};
	int r;

	r = read_report(ns, &report, err);
	if (r == 0)
		r = err_set(err, -ECHILD, "process 1 ended before it was ready");
	if (r > 0 && report.r < 0)
		r = err_set(err, report.r, "%s", report.err.msg);
	if (r < 0)
		return r;
	*ret_devpts_fd = report.devpts_fd;
	/* Its own end closes when it executes the init program: that is what is waited for now. */
	scoped_close(&ns->report[1]);
	ns->report[1] = -1;
	r = read_report(ns, &report, err);
	close_pair(ns->go);
	close_pair(ns->report);
	return r > 0 ? err_set(err, report.r, "%s", report.err.msg) : r;
}

void ns_close(struct ns *ns, int wait_ms)
{
	struct pollfd fd = {.fd = ns->pidfd, .events = POLLIN};

	close_pair(ns->go);
	close_pair(ns->report);
	if (ns->pid > 0) {
		(void)syscall(SYS_pidfd_send_signal, ns->pidfd, SIGKILL, NULL,
			0); /* gone already is fine */
		if (poll(&fd, 1, wait_ms) > 0)
			(void)waitid(P_PIDFD, (id_t)ns->pidfd, &(siginfo_t){0}, WEXITED);
	}
	ns->pid = 0;
	scoped_close(&ns->pidfd);
	scoped_close(&ns->userns_fd);
	ns->pidfd = ns->userns_fd = -1;
}
