/* SPDX-License-Identifier: Apache-2.0 */
/* An exec as the supervisor holds it. The command is its own child; how it gets inside is enter.c.
 *
 * States: prepared (a cgroup), started (a child that may still be on its way in and shares our memory),
 * away (it has executed or ended: the shared block is given back), reaped. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "sandbox/enter.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/user.h"
#include "util/mem.h"
#include "util/scoped.h"

#define START_MAX_MS 1000
#define KILL_MAX_MS  5000
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define TTY_GROUP    5
#define DEFAULT_ROWS 24
#define DEFAULT_COLS 80

struct sandbox_exec {
	struct sandbox *sandbox;
	char *id;
	int cgroup_fd;
	uint64_t cgroup_id;
	struct user user;
	struct spec_words argv, env, programs;
	char *cwd;
	int stdio[3]; /* ours */
	int program_fd;
	int pty, status_fd;
	pid_t pid; /* 0: never started */
	bool is_reaped;
	int pidfd;
	int status; /* -EAGAIN until known */
	int status_step;
	void *block; /* stacks, struct enter, arrays; NULL when the child is not in it */
	size_t block_len;
};

/* A list that the kernel can take: ends with NULL, which n does not count. */
static void add_word(struct spec_words *words, char *word)
{
	words->items = mem_grow(words->items, words->n + 2, sizeof(*words->items));
	words->items[words->n++] = word;
	words->items[words->n] = NULL;
}

static void done_words(struct spec_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->items[i]);
	free(words->items);
	*words = (struct spec_words){0};
}

/* Sets K=V, replacing what had the name. */
static void set_env(struct spec_words *env, const char *pair)
{
	size_t len = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->items[i], pair, len) == 0) {
			free(env->items[i]);
			env->items[i] = mem_dup(pair);
			return;
		}
	add_word(env, mem_dup(pair));
}

static void set_all(struct spec_words *env, const struct spec_words *pairs)
{
	for (size_t i = 0; i < pairs->n; i++)
		if (strchr(pairs->items[i], '='))
			set_env(env, pairs->items[i]);
}

static const char *get_env(const struct spec_words *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
			return env->items[i] + len + 1;
	return NULL;
}

static void fill_env(struct sandbox_exec *exec, const struct spec_exec *spec)
{
	struct spec_words trust = {0};

	add_word(&exec->env, mem_dup("PATH=" DEFAULT_PATH));
	add_word(&exec->env, mem_printf("HOME=%s", exec->user.home));
	add_word(&exec->env, mem_printf("USER=%s", exec->user.name));
	add_word(&exec->env, mem_dup(spec->terminal ? "TERM=xterm-256color" : "TERM=dumb"));
	add_word(&exec->env, mem_dup("LANG=C.UTF-8"));
	set_all(&exec->env, &exec->sandbox->image_env);
	/* An image's own roots are not all that is trusted here. */
	trust_add_env(&exec->sandbox->trust, &trust);
	set_all(&exec->env, &trust);
	set_env(&exec->env, "IS_SANDBOX=1");
	spec_words_done(&trust);
	set_all(&exec->env, &spec->env);
}

/* The places where a program without a slash may be, in the order of PATH. */
static void fill_programs(struct sandbox_exec *exec)
{
	const char *name = exec->argv.items[0], *path = get_env(&exec->env, "PATH");

	if (strchr(name, '/') || name[0] == '\0') {
		add_word(&exec->programs, mem_dup(name));
		return;
	}
	for (path = path ? path : DEFAULT_PATH; *path; path += *path == ':') {
		size_t len = strcspn(path, ":");

		add_word(&exec->programs,
			mem_printf("%.*s%s%s", (int)len, path, len ? "/" : "./", name));
		path += len;
	}
	if (exec->programs.n == 0)
		add_word(&exec->programs, mem_dup(name));
}

static int fill_argv(struct sandbox_exec *exec, const struct spec_exec *spec, struct err *err)
{
	if (spec->command) {
		add_word(&exec->argv, mem_dup("/bin/sh"));
		add_word(&exec->argv, mem_dup("-c"));
		add_word(&exec->argv, mem_dup(spec->command));
		return 0;
	}
	if (spec->argv.n == 0)
		return err_set(err, -EINVAL, "no command given");
	for (size_t i = 0; i < spec->argv.n; i++)
		add_word(&exec->argv, mem_dup(spec->argv.items[i]));
	return 0;
}

static int fill_stdio(
	struct sandbox_exec *exec, const struct sandbox_exec_config *config, struct err *err)
{
	const int given[3] = {config->stdin_fd, config->stdout_fd, config->stderr_fd};

	for (int i = 0; i < 3; i++) {
		exec->stdio[i] =
			given[i] >= 0
				? fcntl(given[i], F_DUPFD_CLOEXEC, 3)
				: open("/dev/null", (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
		if (exec->stdio[i] < 0)
			return err_set(err, -errno, "take the command's descriptors: %m");
	}
	return 0;
}

/* A terminal of the sandbox's own devpts; no path inside is looked up for it. */
static int open_pty(struct sandbox_exec *exec, const struct spec_exec *spec, struct err *err)
{
	uint32_t base = exec->sandbox->range.base;
	int unlock = 0;

	exec->pty = openat(exec->sandbox->devpts_fd, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (exec->pty < 0 || ioctl(exec->pty, TIOCSPTLCK, &unlock) < 0)
		return err_set(err, -errno, "open a terminal: %m");
	(void)sandbox_exec_resize(exec, spec->rows ? spec->rows : DEFAULT_ROWS,
		spec->columns ? spec->columns : DEFAULT_COLS);
	exec->stdio[0] = ioctl(exec->pty, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (exec->stdio[0] < 0 ||
		fchown(exec->stdio[0], base + exec->user.uid, base + TTY_GROUP) < 0)
		return err_set(err, -errno, "open the terminal's other side: %m");
	for (int i = 1; i < 3; i++) {
		exec->stdio[i] = fcntl(exec->stdio[0], F_DUPFD_CLOEXEC, 3);
		if (exec->stdio[i] < 0)
			return err_set(err, -errno, "take the terminal: %m");
	}
	return 0;
}

static int prepare(
	struct sandbox_exec *exec, const struct sandbox_exec_config *config, struct err *err)
{
	const struct spec_exec *spec = config->spec;
	struct sandbox *s = exec->sandbox;
	int r = user_find(&exec->user, spec->user, s->root_fd, err);

	if (r == 0)
		r = fill_argv(exec, spec, err);
	if (r < 0)
		return r;
	fill_env(exec, spec);
	fill_programs(exec);
	exec->cwd = mem_dup(spec->cwd ? spec->cwd : s->default_cwd);
	r = spec->terminal ? open_pty(exec, spec, err) : fill_stdio(exec, config, err);
	if (r == 0)
		r = cgroup_make_child(
			&s->cgroup, config->id, &exec->cgroup_fd, &exec->cgroup_id, err);
	return r;
}

int sandbox_exec_prepare(struct sandbox *sandbox, const struct sandbox_exec_config *config,
	struct sandbox_exec **ret_exec, struct err *err)
{
	struct sandbox_exec *exec = new0(struct sandbox_exec);
	int r;

	exec->sandbox = sandbox;
	exec->id = mem_dup(config->id);
	exec->cgroup_fd = exec->pty = exec->status_fd = exec->pidfd = -1;
	exec->stdio[0] = exec->stdio[1] = exec->stdio[2] = -1;
	exec->program_fd = config->program_fd;
	exec->status = -EAGAIN;
	r = prepare(exec, config, err);
	if (r < 0) {
		sandbox_exec_free(exec);
		return r;
	}
	*ret_exec = exec;
	return 0;
}

uint64_t sandbox_exec_cgroup_id(const struct sandbox_exec *exec)
{
	return exec->cgroup_id;
}

/* The supervisor decides what it ignores before its first exec, so that it is asked once. */
static uint64_t ignored_signals(void)
{
	static uint64_t mask;
	static bool is_known;
	struct sigaction action;

	for (int i = 1; !is_known && i < NSIG; i++)
		if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			mask |= UINT64_C(1) << (i - 1);
	is_known = true;
	return mask;
}

static void fill_enter(struct enter *e, const struct sandbox_exec *exec, int status_fd)
{
	const struct sandbox *s = exec->sandbox;

	*e = (struct enter){
		.init_pidfd = s->ns.pidfd,
		.cgroup_fd = exec->cgroup_fd,
		.status_fd = status_fd,
		.fds = {exec->stdio[0], exec->stdio[1], exec->stdio[2]},
		.has_terminal = exec->pty >= 0,
		.uid = exec->user.uid,
		.gid = exec->user.gid,
		.groups = exec->user.groups,
		.n_groups = (unsigned)exec->user.n_groups,
		.cwd = exec->cwd,
		.program_fd = exec->program_fd,
		.programs = (const char *const *)exec->programs.items,
		.argv = exec->argv.items,
		.env = exec->env.items,
		.filter = s->filter.prog,
		.ignored_signals = ignored_signals(),
		.child_stack_top = (char *)exec->block + 2 * ENTER_STACK_SIZE,
		.pidfd = -1,
	};
	for (int i = 0; i < ENTER_MAX_JOINS; i++)
		e->join_fds[i] = s->cgroup.v1_join_fds[i];
}

/* The block: the helper's stack, the child's, then struct enter. */
static struct enter *enter_of(const struct sandbox_exec *exec)
{
	return (struct enter *)(void *)((char *)exec->block + 2 * ENTER_STACK_SIZE);
}

static void give_block_back(struct sandbox_exec *exec)
{
	if (!exec->block)
		return;
	enter_wait_helper(enter_of(exec));
	(void)munmap(exec->block, exec->block_len);
	exec->block = NULL;
	for (int i = 0; i < 3; i++) {
		scoped_close(&exec->stdio[i]);
		exec->stdio[i] = -1;
	}
	scoped_close(&exec->program_fd);
	exec->program_fd = -1;
	done_words(&exec->argv);
	done_words(&exec->env);
	done_words(&exec->programs);
}

static int launch(struct sandbox_exec *exec, struct err *err)
{
	struct enter *e = enter_of(exec);
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	r = enter_start(e, (char *)exec->block + ENTER_STACK_SIZE);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		r = enter_wait_pid(e, START_MAX_MS);
	if (r == -EAGAIN)
		return err_set(err, r,
			"start a process in the sandbox: its limit on processes is reached");
	if (r < 0)
		return err_set(err, r, "start a process in the sandbox: %m");
	exec->pid = e->pid;
	exec->pidfd = e->pidfd;
	return 0;
}

int sandbox_exec_start(struct sandbox_exec *exec, struct err *err)
{
	int pair[2], r;

	if (exec->pid)
		return err_set(err, -EBUSY, "exec %s was started before", exec->id);
	exec->block_len = 2 * ENTER_STACK_SIZE + sizeof(struct enter);
	exec->block = mmap(
		NULL, exec->block_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (exec->block == MAP_FAILED) {
		exec->block = NULL;
		return err_set(err, -errno, "memory for a stack: %m");
	}
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0) {
		r = -errno;
		give_block_back(exec);
		return err_set(err, r, "make a pipe: %m");
	}
	exec->status_fd = pair[0];
	fill_enter(enter_of(exec), exec, pair[1]);
	r = launch(exec, err);
	(void)close(pair[1]); /* the child has its own */
	if (r < 0)
		give_block_back(exec);
	return r;
}

int sandbox_exec_status_fd(const struct sandbox_exec *exec)
{
	return exec->status_fd;
}

static int say_failure(const struct sandbox_exec *exec, struct err *err)
{
	static const char *const steps[] = {
		[ENTER_LIMITS] = "join the sandbox's limits",
		[ENTER_NAMESPACES] = "enter the sandbox",
		[ENTER_TERMINAL] = "take the terminal",
		[ENTER_DESCRIPTORS] = "take the command's descriptors",
		[ENTER_USER] = "become the user",
		[ENTER_RIGHTS] = "give up rights",
	};

	if (exec->status == 0)
		return 0;
	if (exec->status_step == ENTER_CWD)
		return err_set(err, exec->status, "working directory '%s': %m", exec->cwd);
	if (exec->status_step == ENTER_EXECVE)
		return err_set(err, exec->status, "run the command: %m");
	return err_set(err, exec->status, "%s: %m", steps[exec->status_step]);
}

bool sandbox_exec_is_command_refused(const struct sandbox_exec *exec)
{
	return exec->status < 0 && exec->status != -EAGAIN && exec->status_step == ENTER_EXECVE;
}

/* The child has left our memory once the pipe ended, whether by execve or by its death. */
int sandbox_exec_status(struct sandbox_exec *exec, struct err *err)
{
	struct enter_status status;
	ssize_t n;

	if (exec->status != -EAGAIN)
		return say_failure(exec, err);
	n = read(exec->status_fd, &status, sizeof(status));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR
		               ? -EAGAIN
		               : err_set(err, -errno, "read an exec's status: %m");
	exec->status = 0;
	if (n == 0)
		give_block_back(exec);
	if (n == (ssize_t)sizeof(status) && status.errnum > 0 && status.step >= 0 &&
		status.step <= ENTER_EXECVE) {
		exec->status = -status.errnum;
		exec->status_step = status.step;
	}
	return say_failure(exec, err);
}

pid_t sandbox_exec_pid(const struct sandbox_exec *exec)
{
	return exec->pid;
}

int sandbox_exec_pidfd(const struct sandbox_exec *exec)
{
	return exec->pidfd;
}

int sandbox_exec_pty(const struct sandbox_exec *exec)
{
	return exec->pty;
}

int sandbox_exec_resize(struct sandbox_exec *exec, unsigned short rows, unsigned short columns)
{
	struct winsize size = {.ws_row = rows, .ws_col = columns};

	if (exec->pty < 0 || rows == 0 || columns == 0)
		return -EINVAL;
	return ioctl(exec->pty, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int sandbox_exec_signal(struct sandbox_exec *exec, int signal)
{
	if (exec->pidfd < 0)
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, exec->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int sandbox_exec_kill(struct sandbox_exec *exec)
{
	return cgroup_kill(exec->cgroup_fd);
}

/* Until its execve the child shared our memory, which the kernel counts as its own: what is no more than that is not
 * known. */
static int64_t largest_process(const struct rusage *used)
{
	struct rusage own;

	if (getrusage(RUSAGE_SELF, &own) < 0 || used->ru_maxrss <= own.ru_maxrss)
		return GAUGE_UNKNOWN;
	return used->ru_maxrss * 1024;
}

int sandbox_exec_reap(struct sandbox_exec *exec, struct sandbox_exit *ret_exit)
{
	siginfo_t info = {0};
	struct rusage used = {0};

	/* libc's waitid() leaves out what was used. */
	if (syscall(SYS_waitid, P_PIDFD, exec->pidfd, &info, WEXITED | WNOHANG, &used) < 0)
		return -errno;
	if (info.si_pid == 0)
		return -EAGAIN;
	*ret_exit = (struct sandbox_exit){.rss_max_bytes = largest_process(&used),
		.disk_read_bytes = gauge_counts_disk() ? used.ru_inblock * 512 : GAUGE_UNKNOWN,
		.disk_write_bytes = gauge_counts_disk() ? used.ru_oublock * 512 : GAUGE_UNKNOWN};
	if (info.si_code == CLD_EXITED) {
		ret_exit->code = info.si_status;
	} else {
		ret_exit->signal = info.si_status;
		ret_exit->oom_killed =
			info.si_status == SIGKILL && cgroup_take_oom_kill(&exec->sandbox->cgroup);
	}
	exec->is_reaped = true;
	give_block_back(exec);
	return 0;
}

/* v1 groups are the whole sandbox's: nothing in them is one exec's. */
void sandbox_exec_read_usage(const struct sandbox_exec *exec, struct gauge_group *ret)
{
	gauge_read_group(exec->cgroup_fd, NULL, NULL, ret);
}

int64_t sandbox_exec_pids_refused(const struct sandbox_exec *exec)
{
	return exec->sandbox->cgroup.limits_pids ? gauge_read_pids_refused(exec->cgroup_fd) : 0;
}

void sandbox_exec_add_processes(
	const struct sandbox_exec *exec, unsigned *left, struct gauge_processes *sum)
{
	gauge_add_processes(exec->cgroup_fd, left, sum);
}

int sandbox_exec_n_left(const struct sandbox_exec *exec)
{
	return cgroup_count(exec->cgroup_fd);
}

/* A child that is still there is killed: it may be in our memory, and nobody would reap it. One that the kernel
 * cannot end in time keeps what it has. */
static void end_child(struct sandbox_exec *exec)
{
	struct pollfd fd = {.fd = exec->pidfd, .events = POLLIN};

	if (exec->pid == 0 || exec->is_reaped)
		return;
	(void)cgroup_kill(exec->cgroup_fd);
	if (poll(&fd, 1, KILL_MAX_MS) > 0)
		(void)waitid(P_PIDFD, (id_t)exec->pidfd, &(siginfo_t){0}, WEXITED);
	else
		exec->block = NULL;
}

void sandbox_exec_free(struct sandbox_exec *exec)
{
	if (!exec)
		return;
	end_child(exec);
	give_block_back(exec);
	for (int i = 0; i < 3; i++)
		scoped_close(&exec->stdio[i]);
	scoped_close(&exec->program_fd);
	scoped_close(&exec->pty);
	scoped_close(&exec->status_fd);
	scoped_close(&exec->pidfd);
	if (exec->cgroup_fd >= 0)
		(void)unlinkat(exec->sandbox->cgroup.fd, exec->id,
			AT_REMOVEDIR); /* left where not empty */
	scoped_close(&exec->cgroup_fd);
	done_words(&exec->argv);
	done_words(&exec->env);
	done_words(&exec->programs);
	free(exec->cwd);
	free(exec->id);
	free(exec);
}
