/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/jail_inside.h"
#include "image/parcel.h"
#include "image/progress.h"
#include "sandbox/idrange.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define PATH_LEN     64
#define MAP_LEN      64
#define ERRNO_DIGITS 4
#define REASON_MAX   400
#define STEP_MS      200
#define READ_STEP    (64u << 10)
#define SPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
		CLONE_NEWCGROUP)

static int write_map(pid_t pid, const char *which, uint32_t base)
{
	char path[PATH_LEN], text[MAP_LEN];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	(void)snprintf(text, sizeof(text), "0 %u %u\n", base, IDRANGE_LEN);
	return fdio_put(AT_FDCWD, path, text);
}

static int give_ids(const struct jail *jail, pid_t pid, int go_fd, struct err *err)
{
	int r = write_map(pid, "uid_map", jail->base);

	if (r == 0)
		r = write_map(pid, "gid_map", jail->base);
	if (r == 0)
		r = fdio_write_all(go_fd, "", 1);
	return r < 0 ? err_set(err, r, "give ids to a child: %m") : 0;
}

int jail_start(const struct jail *jail, struct jail_child *ret_child, struct err *err)
{
	int go[2], report[2], r;
	long pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make a pipe: %m");
	if (pipe2(report, O_CLOEXEC) < 0) {
		r = err_set(err, -errno, "make a pipe: %m");
		(void)close(go[0]);
		(void)close(go[1]);
		return r;
	}
	pid = syscall(SYS_clone, SPACES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		jail_inside_run(jail, go[0], report[1]);
	r = pid < 0 ? err_set(err, -errno, "start a child to %s: %m", jail->what)
	            : give_ids(jail, (pid_t)pid, go[1], err);
	(void)close(go[0]);
	(void)close(go[1]);
	(void)close(report[1]);
	*ret_child =
		(struct jail_child){.what = jail->what, .pid = (pid_t)pid, .report_fd = report[0]};
	if (r < 0)
		jail_end(ret_child);
	return r;
}

static int wait_for(struct jail_child *child)
{
	int status = 0;

	while (child->pid > 0 && waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	child->pid = 0;
	return status;
}

void jail_end(struct jail_child *child)
{
	if (child->pid > 0) {
		(void)kill(child->pid, SIGKILL);
		(void)wait_for(child);
	}
	scoped_close(&child->report_fd);
	*child = JAIL_NO_CHILD;
}

/* "ERRNO SENTENCE" */
static int say_failure(const char *what, struct slice text, struct err *err)
{
	unsigned long long n = 0;
	const char *space = memchr(text.p, ' ', text.len);
	size_t len = space ? (size_t)(space - text.p) : 0;

	if (!space || len > ERRNO_DIGITS ||
		parcel_count((struct slice){.p = text.p, .len = len}, &n) < 0 || n == 0 || n > 4095)
		return err_set(err, -EIO, "%s: the child that does it failed", what);
	text.p += len + 1;
	text.len -= len + 1;
	return err_set(err, -(int)n, "%s: %.*s", what,
		(int)(text.len < REASON_MAX ? text.len : REASON_MAX), text.p);
}

static int check_end(const char *what, int status, struct err *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
		return err_set(
			err, -ENOMEM, "%s: it takes more memory than such a child may have", what);
	if (WIFSIGNALED(status))
		return err_set(err, -EIO, "%s: the child that does it was ended by signal %d", what,
			WTERMSIG(status));
	return err_set(err, -EIO, "%s: the child that does it failed", what);
}

/* A child may hang, or be made to: it is waited for as long as nobody wants to stop. */
static int wait_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (!progress_is_stopped()) {
		int n = poll(&p, 1, STEP_MS);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -EINTR;
}

static int read_report(int fd, size_t max, struct str *out)
{
	for (;;) {
		int r = wait_readable(fd);
		ssize_t n;

		if (r < 0)
			return r;
		str_reserve(out, READ_STEP);
		n = read(fd, out->p + out->len, READ_STEP);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		out->len += (size_t)n;
		out->p[out->len] = '\0';
		if (out->len > max)
			return -EFBIG;
	}
}

/* It may have closed its report and go on. */
static int wait_end(const struct jail_child *child)
{
	scoped_fd int fd = (int)syscall(SYS_pidfd_open, child->pid, 0);

	return fd < 0 ? -errno : wait_readable(fd);
}

int jail_finish(struct jail_child *child, size_t max, struct str *ret_report, struct err *err)
{
	const char *what = child->what;
	struct slice rest, text;
	int type, status, r = read_report(child->report_fd, max, ret_report);

	if (r == 0)
		r = wait_end(child);
	if (r < 0)
		(void)kill(child->pid, SIGKILL);
	status = wait_for(child);
	jail_end(child);
	if (r == -EINTR)
		return err_set(err, r, "stopped by a signal");
	if (r < 0 && r != -EFBIG)
		return err_set(err, r, "%s: wait for the child that does it: %m", what);
	if (r < 0)
		return err_set(err, r, "%s: its report is too long", what);
	rest = str_slice(ret_report);
	if (parcel_next(&rest, &type, &text) == 1 && type == PARCEL_FAILED)
		return say_failure(what, text, err);
	return check_end(what, status, err);
}

int jail_ask(const struct jail *jail, size_t max, struct str *ret_report, struct err *err)
{
	struct jail_child child = JAIL_NO_CHILD;
	int r = jail_start(jail, &child, err);

	return r < 0 ? r : jail_finish(&child, max, ret_report, err);
}
