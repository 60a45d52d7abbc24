/* SPDX-License-Identifier: Apache-2.0 */
/* Observes one command without a box: makes a cgroup, runs the command in it, prints the events as lines.
 *
 * trace [-q] [-w] [-x] [-b BYTES] [-d MS] COMMAND [ARG...]: -q counts instead of printing, -w waits for the group
 * to be empty and not only for the command, -x dies after it without having looked; -b is what may wait to be read,
 * -d how long nobody reads, as if the disk were slow. trace -s prints what a dead one left. Root only. The pins lie
 * in CLOCHE_RUN (default /run/cloche). */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/event_json.h"
#include "observer/observer.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/str.h"

#define SANDBOX_ID "sb_0000000000000000"
#define EXEC_ID    "ex_0000000000000000"

struct printer {
	struct event_sink sink;
	struct str line;
	uint64_t seq;
	bool quiet, dies;
	size_t buffer_bytes;
	useconds_t away_us; /* how long nobody reads */
	int cgroup_fd;
	int n_holds;
	size_t kinds[EVENT_N_KINDS];
	int64_t late_ns; /* the longest from happening to here */
	int64_t start_ns;
	int64_t open_ns; /* how long observer_open() took */
};

static void on_emit(struct event_sink *sink, struct event *ev)
{
	struct printer *p = (struct printer *)sink;
	int64_t late = clock_mono_ns() - p->start_ns - ev->guest_ns;

	ev->seq = ++p->seq;
	p->kinds[ev->kind]++;
	if (late > p->late_ns)
		p->late_ns = late;
	if (p->quiet)
		return;
	str_reset(&p->line);
	event_json_write(&p->line, ev, slice_of(SANDBOX_ID));
	str_putc(&p->line, '\n');
	(void)fwrite(p->line.p, 1, p->line.len,
		stdout); /* a closed stdout shows in the test that reads it */
}

static const char *cgroup_root(void)
{
	return access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0 ? "/sys/fs/cgroup/unified"
	                                                                : "/sys/fs/cgroup";
}

static pid_t start(int cgroup_fd, char **argv)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup_fd};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid != 0)
		return (pid_t)pid;
	execvp(argv[0], argv);
	_exit(127);
}

static void on_hold(void *ctx, bool on)
{
	struct printer *p = ctx;

	p->n_holds += on;
	(void)fdio_put(
		p->cgroup_fd, "cgroup.freeze", on ? "1" : "0"); /* what is lost then is counted */
}

static const char *pin_dir(struct str *path)
{
	const char *run_dir = getenv("CLOCHE_RUN");

	str_reset(path);
	str_printf(path, "%s/bpf", run_dir ? run_dir : "/run/cloche");
	return path->p;
}

static bool is_populated(int cgroup_fd)
{
	scoped_str struct str text = {0};

	return fdio_read_file(cgroup_fd, "cgroup.events", 4096, &text) == 0 &&
	       strstr(text.p, "populated 1");
}

static bool is_over(pid_t pid, int cgroup_fd, bool wait_all, int *status)
{
	static bool ended;

	ended = ended || waitpid(pid, status, WNOHANG) == pid;
	return ended && (!wait_all || !is_populated(cgroup_fd));
}

/* What a supervisor's loop does. */
static void watch(struct observer *o, pid_t pid, int cgroup_fd, bool wait_all, int *status)
{
	struct pollfd pfd = {.fd = observer_fd(o), .events = POLLIN};
	int quiet_ms = 0;

	while (!is_over(pid, cgroup_fd, wait_all, status)) {
		if (observer_drain(o, 0) > 0)
			quiet_ms = 0;
		else
			quiet_ms += OBSERVER_POLL_MS;
		if (quiet_ms < OBSERVER_QUIET_MS || observer_arm(o))
			(void)poll(
				&pfd, 1, OBSERVER_POLL_MS); /* a ring that fills wakes us sooner */
		else
			(void)poll(
				&pfd, 1, 100); /* the driver looks for the child's end by itself */
	}
}

static double cpu_ms(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void print_counts(const struct printer *p, const struct observer *o)
{
	struct observer_counts counts;

	observer_get_counts(o, &counts);
	for (int i = 0; i < EVENT_N_KINDS; i++)
		if (p->kinds[i])
			fprintf(stderr, "%s %zu\n", event_kind_name((enum event_kind)i),
				p->kinds[i]);
	fprintf(stderr,
		"events %llu dropped %llu blind %llu late_ms %.1f cpu_ms %.1f children_cpu_ms "
		"%.1f open_ms %.1f holds %d\n",
		(unsigned long long)counts.events, (unsigned long long)counts.dropped,
		(unsigned long long)counts.blind, (double)p->late_ns / 1e6, cpu_ms(RUSAGE_SELF),
		cpu_ms(RUSAGE_CHILDREN), (double)p->open_ns / 1e6, p->n_holds);
}

/* The group exists; runs the command in it. */
static int run_in(struct printer *p, const char *group, char **argv, bool wait_all, struct err *err)
{
	scoped_str struct str pins = {0};
	scoped_fd int root = open("/", O_PATH | O_CLOEXEC),
		      cgroup_fd = open(group, O_DIRECTORY | O_CLOEXEC);
	scoped(observer) struct observer *o = NULL;
	struct observer_config config = {
		.id = SANDBOX_ID,
		.pin_dir = pin_dir(&pins),
		.root_fd = root,
		.sources = OBSERVER_PROCESSES | OBSERVER_FILES | OBSERVER_OUTPUTS,
		.sink = &p->sink,
		.start_ns = p->start_ns,
		.buffer_bytes = p->buffer_bytes,
		.hold = on_hold,
		.hold_ctx = p,
	};
	struct stat st;
	int status = 0, r;
	pid_t pid;

	if (cgroup_fd < 0 || fstat(cgroup_fd, &st) < 0)
		return err_set(err, -errno, "open cgroup %s: %m", group);
	p->cgroup_fd = cgroup_fd;
	p->open_ns = clock_mono_ns();
	r = observer_open(&config, &o, err);
	p->open_ns = clock_mono_ns() - p->open_ns;
	if (r == 0)
		r = observer_add_cgroup(o, st.st_ino, EXEC_ID, false, err);
	if (r < 0)
		return r;
	pid = start(cgroup_fd, argv);
	if (pid < 0)
		return err_set(err, -errno, "clone: %m");
	if (p->dies) {
		(void)waitpid(pid, &status, 0);
		(void)rmdir(group);
		_exit(0);
	}
	usleep(p->away_us);
	watch(o, pid, cgroup_fd, wait_all, &status);
	r = observer_drain_exit(o, 1000);
	observer_remove_cgroup(o, st.st_ino);
	print_counts(p, o);
	return r < 0 ? err_set(err, r, "drain: %m") : status;
}

static int salvage(struct printer *p)
{
	scoped_str struct str pins = {0};
	struct err err = {0};
	int r = observer_salvage(pin_dir(&pins), SANDBOX_ID, &p->sink, &err);

	str_done(&p->line);
	if (r < 0)
		fprintf(stderr, "trace: %s\n", err.msg);
	return r < 0 ? 125 : 0;
}

int main(int argc, char **argv)
{
	struct printer p = {.sink = {.emit = on_emit}, .start_ns = clock_mono_ns()};
	scoped_mem char *group = mem_printf("%s/cloche-trace-%d", cgroup_root(), getpid());
	bool wait_all = false;
	struct err err = {0};
	int c, r;

	while ((c = getopt(argc, argv, "+qwxsb:d:")) != -1) {
		p.quiet |= c == 'q';
		wait_all |= c == 'w';
		p.dies |= c == 'x';
		if (c == 'b')
			p.buffer_bytes = strtoul(optarg, NULL, 10);
		if (c == 'd')
			p.away_us = (useconds_t)strtoul(optarg, NULL, 10) * 1000;
		if (c == 's')
			return salvage(&p);
	}
	if (optind == argc)
		return 2;
	if (mkdir(group, 0755) < 0) {
		fprintf(stderr, "trace: make cgroup %s: %s\n", group, strerror(errno));
		return 125;
	}
	r = run_in(&p, group, argv + optind, wait_all, &err);
	str_done(&p.line);
	(void)rmdir(group); /* stays where something in it still runs */
	if (r >= 0)
		return WIFEXITED(r) ? WEXITSTATUS(r) : 128 + WTERMSIG(r);
	fprintf(stderr, "trace: %s\n", err.msg);
	return 125;
}
