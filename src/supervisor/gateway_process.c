/* SPDX-License-Identifier: Apache-2.0 */
/* Its end is seen at the control socket, which closes when it dies. */
#include "supervisor/gateway_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/mem.h"
#include "util/program.h"

#define PROGRAM     "cloche-gateway"
#define READ_STEP   65536
#define END_WAIT_MS 1000 /* for it to end by itself once nobody listens */

struct gateway_process {
	struct gateway_process_config config;
	int pidfd, control;
	struct loop_io *io;
	struct str in, out;
	uint64_t flush_id, flushed_id;
	bool is_ended, is_finishing;
	int depth; /* inside a callback: not freed under it */
	bool is_freed;
};

/* ---- starting ---- */

/* Above all the numbers they are to have, so that none is overwritten before it is placed. */
static int lift(const struct gateway_process_config *config, int control, int high[GATEWAY_FD_END],
	struct err *err)
{
	for (int i = GATEWAY_FD_CONTROL; i < GATEWAY_FD_END; i++) {
		int fd = i == GATEWAY_FD_CONTROL ? control : config->fds[i];

		if (fd < 0)
			continue;
		high[i] = fcntl(fd, F_DUPFD_CLOEXEC, GATEWAY_FD_END);
		if (high[i] < 0)
			return err_set(err, -errno, "give the gateway its descriptors: %m");
	}
	return 0;
}

static int spawn(const int high[GATEWAY_FD_END], pid_t *ret_pid, struct err *err)
{
	char *argv[] = {(char[]){PROGRAM}, NULL}, *no_env[] = {NULL};
	char *debug_env[] = {(char[]){"CLOCHE_DEBUG=1"}, NULL};
	posix_spawn_file_actions_t actions;
	scoped_str struct str path = {0};
	int r = program_find(PROGRAM, &path, err);

	if (r < 0)
		return r;
	posix_spawn_file_actions_init(&actions);
	for (int i = GATEWAY_FD_CONTROL; i < GATEWAY_FD_END; i++)
		if (high[i] >= 0)
			posix_spawn_file_actions_adddup2(&actions, high[i], i);
	r = -posix_spawn(
		ret_pid, path.p, &actions, NULL, argv, getenv("CLOCHE_DEBUG") ? debug_env : no_env);
	posix_spawn_file_actions_destroy(&actions);
	return r < 0 ? err_set(err, r, "start '%s': %m", path.p) : 0;
}

static int place(
	const struct gateway_process_config *config, int control, pid_t *ret_pid, struct err *err)
{
	int high[GATEWAY_FD_END], r;

	for (int i = 0; i < GATEWAY_FD_END; i++)
		high[i] = -1;
	r = lift(config, control, high, err);
	if (r == 0)
		r = spawn(high, ret_pid, err);
	for (int i = 0; i < GATEWAY_FD_END; i++)
		scoped_close(&high[i]);
	return r;
}

/* ---- its end ---- */

static void kill_it(struct gateway_process *gateway)
{
	(void)syscall(
		SYS_pidfd_send_signal, gateway->pidfd, SIGKILL, NULL, 0); /* gone already is fine */
}

static siginfo_t reap(struct gateway_process *gateway)
{
	struct pollfd p = {.fd = gateway->pidfd, .events = POLLIN};
	siginfo_t info = {0};

	if (poll(&p, 1, END_WAIT_MS) != 1)
		kill_it(gateway);
	while (waitid(P_PIDFD, (id_t)gateway->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	return info;
}

static void ended(struct gateway_process *gateway, const char *why)
{
	scoped_mem char *reason = NULL;
	siginfo_t info;

	if (gateway->is_ended)
		return;
	gateway->is_ended = true;
	loop_io_free(take(&gateway->io));
	if (why)
		kill_it(gateway);
	info = reap(gateway);
	if (why)
		reason = mem_dup(why);
	else
		reason = mem_printf(info.si_code == CLD_EXITED ? "it ended with status %d"
							       : "signal %d ended it",
			info.si_status);
	if (!gateway->is_finishing)
		gateway->config.on_end(gateway->config.ctx, reason);
}

static void release(struct gateway_process *gateway)
{
	str_done(&gateway->in);
	str_done(&gateway->out);
	free(gateway);
}

void gateway_process_free(struct gateway_process *gateway)
{
	if (!gateway || gateway->is_freed)
		return;
	gateway->is_freed = true;
	loop_io_free(gateway->io);
	scoped_close(&gateway->control); /* by which it hears of it */
	if (!gateway->is_ended)
		(void)reap(gateway);
	scoped_close(&gateway->pidfd);
	gateway->is_ended = true;
	if (gateway->depth == 0)
		release(gateway);
}

/* ---- frames ---- */

static void handle(struct gateway_process *gateway, const struct gateway_frame *frame)
{
	if (frame->type == GATEWAY_FLUSHED)
		gateway->flushed_id = frame->id;
	else
		gateway->config.on_frame(gateway->config.ctx, frame);
}

static void handle_all(struct gateway_process *gateway)
{
	size_t done = 0;
	long n = 0;

	while (!gateway->is_freed) {
		struct gateway_frame frame;

		n = gateway_wire_take(
			(struct slice){gateway->in.p + done, gateway->in.len - done}, &frame);
		if (n <= 0 || !gateway_wire_is_from_gateway(frame.type))
			break;
		done += (size_t)n;
		handle(gateway, &frame);
	}
	if (done > 0) {
		memmove(gateway->in.p, gateway->in.p + done, gateway->in.len - done);
		gateway->in.len -= done;
	}
	if (n != 0 && !gateway->is_freed)
		ended(gateway, "it sent what is no frame and was killed");
}

/* 1: something came, 0: nothing is there, -EPIPE: it is gone. */
static int read_in(struct gateway_process *gateway)
{
	ssize_t n;

	if (gateway->is_ended)
		return -EPIPE;
	str_reserve(&gateway->in, READ_STEP);
	n = recv(gateway->control, gateway->in.p + gateway->in.len, READ_STEP, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		ended(gateway, NULL);
		return -EPIPE;
	}
	gateway->in.len += (size_t)n;
	handle_all(gateway);
	return gateway->is_ended ? -EPIPE : 1;
}

static void push_out(struct gateway_process *gateway)
{
	ssize_t n;

	if (gateway->is_ended)
		return;
	do
		n = send(gateway->control, gateway->out.p, gateway->out.len,
			MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* That it is gone is seen when it is read from: no callback from inside a send. */
	if (n > 0) {
		memmove(gateway->out.p, gateway->out.p + n, gateway->out.len - (size_t)n);
		gateway->out.len -= (size_t)n;
	}
	loop_io_set(gateway->io, gateway->out.len > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void enter(struct gateway_process *gateway)
{
	gateway->depth++;
}

static void leave(struct gateway_process *gateway)
{
	if (--gateway->depth == 0 && gateway->is_freed)
		release(gateway);
}

static void on_ready(void *ctx, unsigned what)
{
	struct gateway_process *gateway = ctx;

	enter(gateway);
	if (what & LOOP_READ)
		(void)read_in(gateway);
	else
		push_out(gateway);
	leave(gateway);
}

void gateway_process_send(struct gateway_process *gateway, const struct gateway_frame *frame)
{
	if (gateway->is_ended)
		return;
	gateway_wire_add(&gateway->out, frame);
	push_out(gateway);
}

static int wait_flushed(struct gateway_process *gateway, int64_t end_ns)
{
	uint64_t id = gateway->flush_id;
	int r = 1;

	while (r >= 0 && gateway->flushed_id != id) {
		struct pollfd p = {.fd = gateway->control, .events = POLLIN};
		int64_t left_ns = end_ns - clock_mono_ns();

		if (gateway->out.len > 0) {
			push_out(gateway);
			p.events |= gateway->out.len > 0 ? POLLOUT : 0;
		}
		if (left_ns <= 0 || poll(&p, 1, (int)(left_ns / CLOCK_NS_PER_MS) + 1) == 0)
			return -ETIMEDOUT;
		r = read_in(gateway);
	}
	return r < 0 ? r : 0;
}

int gateway_process_flush(struct gateway_process *gateway, int deadline_ms)
{
	struct gateway_frame frame = {.type = GATEWAY_FLUSH, .id = ++gateway->flush_id};
	int r;

	enter(gateway);
	gateway_process_send(gateway, &frame);
	r = wait_flushed(gateway, clock_mono_ns() + deadline_ms * CLOCK_NS_PER_MS);
	leave(gateway);
	return r;
}

int gateway_process_finish(struct gateway_process *gateway, int deadline_ms)
{
	int64_t end_ns = clock_mono_ns() + deadline_ms * CLOCK_NS_PER_MS;
	struct pollfd p = {.fd = gateway->control, .events = POLLIN};

	gateway->is_finishing = true;
	(void)shutdown(gateway->control, SHUT_WR); /* gone already is fine */
	enter(gateway);
	while (!gateway->is_ended) {
		int64_t left_ns = end_ns - clock_mono_ns();

		if (left_ns <= 0 || poll(&p, 1, (int)(left_ns / CLOCK_NS_PER_MS) + 1) == 0)
			break;
		(void)read_in(gateway); /* its end is what is waited for */
	}
	leave(gateway);
	return gateway->is_ended ? 0 : -ETIMEDOUT;
}

int gateway_process_start(const struct gateway_process_config *config,
	struct gateway_process **ret_gateway, struct err *err)
{
	struct gateway_process *gateway;
	scoped_fd int own = -1, its = -1;
	int pair[2], pidfd, r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "make a socket for the gateway: %m");
	own = pair[0];
	its = pair[1];
	r = place(config, its, &pid, err);
	if (r < 0)
		return r;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = err_set(err, -errno, "open a descriptor of the gateway: %m");
		(void)kill(pid, SIGKILL); /* ours and not waited for: its number is its own */
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	gateway = new0(struct gateway_process);
	gateway->config = *config;
	gateway->pidfd = pidfd;
	gateway->control = take_fd(&own);
	gateway->io = loop_io_new(config->loop, gateway->control, LOOP_READ, on_ready, gateway);
	*ret_gateway = gateway;
	return 0;
}
