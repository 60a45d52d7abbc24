/* SPDX-License-Identifier: Apache-2.0 */
/* The child is our own: its end comes by its pidfd and cannot be faked from inside. Nothing here waits for the
 * box: a child that does not get to execve within START_MS is killed with its whole cgroup. */
#include "supervisor/running.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "supervisor/exec_input.h"
#include "supervisor/exec_row.h"
#include "supervisor/file_program.h"
#include "supervisor/metering.h"
#include "supervisor/network.h"
#include "supervisor/tracing.h"
#include "util/clock.h"
#include "util/id.h"
#include "util/mem.h"

#define START_MS   10000        /* from clone to execve, while the box is not frozen */
#define END_MS     5000         /* for a killed exec to be gone */
#define SWEEP_MIN  16           /* execs that are left, before they are looked at */
#define OUTPUT_CAP (256u << 20) /* of each whole stream that is kept */

struct running {
	struct supervisor *sup;
	char id[ID_SIZE];
	struct spec_exec *spec;
	struct sandbox_exec *box;
	struct conn *conn;
	struct exec_stream streams[2];
	struct exec_input input;
	struct loop_io *exit_io, *status_io;
	struct loop_timer *timeout, *deadline;
	struct exec_row row;
	struct cgroup_limited
		limited_before; /* what limits did to the whole sandbox before it began, */
	int64_t times_full;     /* and how often the disk was full */
	bool is_over;
};

struct ends { /* of the pipes: the child's, then ours */
	int child[3], own[3];
};

static void close_ends(int fds[3])
{
	for (int i = 0; i < 3; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static int open_pipe(int *ret_read, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = fds[0];
	*ret_write = fds[1];
	return 0;
}

static int open_ends(const struct spec_exec *spec, struct ends *ends, struct err *err)
{
	int r = 0;

	*ends = (struct ends){.child = {-1, -1, -1}, .own = {-1, -1, -1}};
	if (spec->terminal)
		return 0;
	if (spec->has_stdin)
		r = open_pipe(&ends->child[0], &ends->own[0]);
	if (r == 0)
		r = open_pipe(&ends->own[1], &ends->child[1]);
	if (r == 0)
		r = open_pipe(&ends->own[2], &ends->child[2]);
	if (r == 0)
		return 0;
	close_ends(ends->child);
	close_ends(ends->own);
	return err_set(err, r, "make pipes for the command: %m");
}

static void say_late(struct running *running, const struct exec_stream *stream, const char *name)
{
	struct event ev = {.kind = EVENT_EXEC_LATE, .exec = slice_of(running->id)};

	if (stream->late_bytes == 0)
		return;
	event_set_text(&ev, stream, name);
	event_set(&ev, bytes, (int64_t)stream->late_bytes);
	recorder_emit_now(running->sup->recorder, &ev);
}

static void forget(struct running *running)
{
	struct supervisor *sup = running->sup;

	for (size_t i = 0; i < sup->n_execs; i++) {
		if (sup->execs[i] != running)
			continue;
		sup->execs[i] = sup->execs[--sup->n_execs];
		return;
	}
}

void running_free(struct running *running)
{
	if (!running)
		return;
	forget(running);
	if (running->is_over) {
		exec_stream_catch_up(&running->streams[0]);
		exec_stream_catch_up(&running->streams[1]);
		say_late(running, &running->streams[0], "stdout");
		say_late(running, &running->streams[1], "stderr");
	}
	exec_input_done(&running->input);
	exec_stream_done(&running->streams[0]);
	exec_stream_done(&running->streams[1]);
	loop_io_free(running->exit_io);
	loop_io_free(running->status_io);
	loop_timer_free(running->timeout);
	loop_timer_free(running->deadline);
	sandbox_exec_free(running->box);
	spec_exec_free(running->spec);
	free(running->row.failure);
	free(running);
}

static void stop_watching(struct running *running)
{
	tracing_remove_cgroup(running->sup, sandbox_exec_cgroup_id(running->box));
	network_end_exec(running->sup, sandbox_exec_cgroup_id(running->box));
}

/* Over, and nothing holds its outputs any more: nothing more will come of it. */
static void on_stream_end(void *ctx)
{
	struct running *running = ctx;

	if (!running->is_over || running->streams[0].fd >= 0 || running->streams[1].fd >= 0)
		return;
	if (sandbox_exec_n_left(running->box) > 0)
		return; /* a daemon: the cgroup, and so its events, stay until the sandbox ends */
	(void)tracing_settle(running->sup); /* its row is written */
	stop_watching(running);
	running_free(running);
}

static void answer(struct running *running)
{
	scoped_str struct str text = {0};
	struct conn *conn = running->conn;

	if (!conn)
		return;
	exec_row_answer(&running->row, &text);
	running_detach(running);
	conn_set_tag(conn, NULL);
	conn_send(conn, WIRE_JSON, str_slice(&text));
}

/* What it used, and what the sandbox's limits did while it ran. */
static void measure(struct running *running)
{
	struct sandbox *sandbox = running->sup->sandbox;
	const struct cgroup_limited *before = &running->limited_before;
	struct exec_row *row = &running->row;

	sandbox_exec_read_usage(running->box, &row->used);
	sandbox_read_limited(sandbox, &row->limited);
	row->limited.oom_kills -= before->oom_kills;
	row->limited.pids_refused += sandbox_exec_pids_refused(running->box) - before->pids_refused;
	row->limited.cpu_throttled_us -= before->cpu_throttled_us;
	(void)sandbox_disk_held(sandbox, &row->disk_full);
	row->disk_full |= metering_times_full(running->sup) > running->times_full;
}

static void write_row(struct running *running)
{
	if (running->spec->operation && !exec_row_is_whole(&running->row)) {
		exec_row_fail(running->sup, &running->row);
		return;
	}
	if (running->spec->operation)
		running->row.id = running->sup->next_row++;
	exec_row_end(running->sup, &running->row);
}

static void finish(struct running *running)
{
	struct supervisor *sup = running->sup;

	if (running->is_over)
		return;
	exec_stream_catch_up(&running->streams[0]);
	exec_stream_catch_up(&running->streams[1]);
	running->row.ended_ns = clock_mono_ns();
	running->row.n_left = sandbox_exec_n_left(running->box);
	measure(running);
	running->row.slice_complete = network_settle(sup);
	running->row.slice_complete &= tracing_settle(sup);
	metering_end_exec(sup, &running->row.exit);
	write_row(running);
	recorder_flush(sup->recorder, sup->spec->durable);
	running->is_over = true;
	running->streams[0].is_late = running->streams[1].is_late = true;
	answer(running);
	on_stream_end(running);
}

static void note_failure(struct running *running, int r, const struct err *err)
{
	running->row.exec_errno = -r;
	if (!running->row.failure && !sandbox_exec_is_command_refused(running->box))
		running->row.failure = mem_dup(err->msg);
}

static void on_exit_ready(void *ctx, unsigned what)
{
	struct running *running = ctx;
	struct err err;
	int r;

	loop_io_free(running->exit_io);
	running->exit_io = NULL;
	r = sandbox_exec_status(running->box, &err);
	if (r < 0 && r != -EAGAIN)
		note_failure(running, r, &err);
	(void)sandbox_exec_reap(running->box, &running->row.exit); /* it has ended: pidfd said so */
	if (running->timeout)
		loop_timer_stop(running->timeout);
	loop_timer_stop(running->deadline);
	finish(running);
}

static void on_status(void *ctx, unsigned what)
{
	struct running *running = ctx;
	struct err err;
	int r = sandbox_exec_status(running->box, &err);

	if (r == -EAGAIN)
		return;
	if (r < 0)
		note_failure(running, r, &err); /* and its exit follows */
	loop_io_free(running->status_io);
	running->status_io = NULL;
	loop_timer_stop(running->deadline);
}

static void on_timeout(void *ctx)
{
	struct running *running = ctx;

	running->row.timed_out = true;
	(void)sandbox_exec_kill(running->box); /* fails only where all of it is gone already */
}

static void on_deadline(void *ctx)
{
	struct running *running = ctx;
	struct event ev = {.kind = EVENT_SANDBOX_ERROR, .exec = slice_of(running->id)};

	if (sandbox_is_frozen(running->sup->sandbox)) {
		loop_timer_set(running->deadline, START_MS);
		return;
	}
	event_set_text(&ev, reason, "the command did not get to start within 10 s and was killed");
	recorder_emit_now(running->sup->recorder, &ev);
	(void)sandbox_exec_kill(running->box); /* its end comes by the pidfd */
}

static void open_files(struct running *running)
{
	struct record *record = running->sup->record;
	struct err err;

	if (running->spec->operation)
		return; /* the row's ends and hashes; the file itself is in the sandbox */
	/* Where a file cannot be made the exec goes on; the row still has hash, length and both ends. */
	(void)record_output_open(
		record, running->id, "out", OUTPUT_CAP, &running->streams[0].file, &err);
	if (!running->spec->terminal)
		(void)record_output_open(
			record, running->id, "err", OUTPUT_CAP, &running->streams[1].file, &err);
	else
		(void)record_cast_open(record,
			&(struct record_cast_start){.exec_id = running->id,
				.title = running->sup->spec->task,
				.rows = running->spec->rows,
				.columns = running->spec->columns},
			&running->streams[0].cast, &err);
}

static void watch_streams(struct running *running, struct ends *ends)
{
	struct loop *loop = running->sup->loop;
	int pty = sandbox_exec_pty(running->box);

	for (int i = 0; i < 2; i++) {
		struct exec_stream *stream = &running->streams[i];

		if (ends->own[i + 1] < 0)
			continue;
		exec_stream_init(stream, loop, ends->own[i + 1], i ? WIRE_STDERR : WIRE_STDOUT);
		ends->own[i + 1] = -1;
	}
	if (pty >= 0)
		exec_stream_init(
			&running->streams[0], loop, fcntl(pty, F_DUPFD_CLOEXEC, 0), WIRE_STDOUT);
	if (running->spec->has_stdin && (pty >= 0 || ends->own[0] >= 0))
		exec_input_init(&running->input, loop, pty >= 0 ? pty : ends->own[0], pty < 0,
			running->conn);
	if (!running->conn)
		exec_input_leave(&running->input);
	ends->own[0] = -1;
	for (int i = 0; i < 2; i++) {
		running->streams[i].on_end = on_stream_end;
		running->streams[i].ctx = running;
		running->streams[i].conn = running->conn;
	}
	open_files(running);
}

static void watch_end(struct running *running)
{
	struct supervisor *sup = running->sup;

	running->exit_io = loop_io_new(
		sup->loop, sandbox_exec_pidfd(running->box), LOOP_READ, on_exit_ready, running);
	running->status_io = loop_io_new(
		sup->loop, sandbox_exec_status_fd(running->box), LOOP_READ, on_status, running);
	running->deadline = loop_timer_new(sup->loop, on_deadline, running);
	loop_timer_set(running->deadline, START_MS);
	if (running->spec->timeout_ms <= 0)
		return;
	running->timeout = loop_timer_new(sup->loop, on_timeout, running);
	loop_timer_set(running->timeout, running->spec->timeout_ms);
}

/* It has a start in the log: so it has an end. */
static void end_failed(struct running *running, int r, const struct err *err)
{
	running->row.exec_errno = -r;
	running->row.failure = mem_dup(err->msg);
	running->row.ended_ns = clock_mono_ns();
	running->row.slice_complete = true;
	write_row(running);
	recorder_flush(running->sup->recorder, running->sup->spec->durable);
}

/* Cgroup, trace, the start in the log, then the clone: in this order, so that nothing runs unseen. */
static int launch(struct running *running, const struct ends *ends, struct err *err)
{
	struct supervisor *sup = running->sup;
	struct sandbox_exec_config config = {.id = running->id,
		.spec = running->spec,
		.stdin_fd = ends->child[0],
		.stdout_fd = ends->child[1],
		.stderr_fd = ends->child[2],
		.program_fd = -1};
	int r = 0;

	if (running->spec->operation)
		r = config.program_fd = file_program_open(err);
	if (r < 0)
		return r;
	network_open(sup);
	r = sandbox_exec_prepare(sup->sandbox, &config, &running->box, err);

	if (r < 0)
		return r;
	r = tracing_add_cgroup(sup, sandbox_exec_cgroup_id(running->box), running->id, err);
	if (r < 0)
		return r;
	network_add_exec(sup, sandbox_exec_cgroup_id(running->box), running->id);
	/* Of operations only those that come to an end are rows. */
	if (!running->spec->operation)
		running->row.id = sup->next_row++;
	sandbox_read_limited(sup->sandbox, &running->limited_before);
	running->times_full = metering_times_full(sup);
	exec_row_start(sup, &running->row);
	recorder_flush(sup->recorder, sup->spec->durable);
	r = sandbox_exec_start(running->box, err);
	if (r == 0)
		return 0;
	end_failed(running, r, err);
	stop_watching(running);
	return r;
}

static struct running *make(struct supervisor *sup, struct conn *conn, struct spec_exec **spec)
{
	struct running *running = new0(struct running);

	running->sup = sup;
	running->conn = conn;
	running->spec = take(spec);
	running->input.fd = running->streams[0].fd = running->streams[1].fd = -1;
	clip_init(&running->streams[0].clip);
	clip_init(&running->streams[1].clip);
	id_new("ex", running->id);
	running->row = (struct exec_row){.exec_id = running->id,
		.spec = running->spec,
		.started_ns = clock_mono_ns(),
		.started_wall_ms = clock_wall_ms(),
		.exit = {.rss_max_bytes = GAUGE_UNKNOWN,
			.disk_read_bytes = GAUGE_UNKNOWN,
			.disk_write_bytes = GAUGE_UNKNOWN},
		.used = {GAUGE_UNKNOWN, GAUGE_UNKNOWN, GAUGE_UNKNOWN, GAUGE_UNKNOWN},
		.streams = running->streams};
	sup->execs = mem_grow(sup->execs, sup->n_execs + 1, sizeof(struct running *));
	sup->execs[sup->n_execs++] = running;
	return running;
}

static void answer_started(struct running *running)
{
	scoped_str struct str text = {0};

	str_printf(&text, "{\"exec\":\"%s\"}", running->id); /* an id of ours: nothing to escape */
	conn_answer_ok(running->conn, str_slice(&text));
	if (running->spec->detach)
		running->conn = NULL;
	else
		conn_set_tag(running->conn, running);
}

/* Lets those go whose daemons have ended meanwhile. Looking at each costs a read, so it is done when there are
 * twice as many as the last time. */
static void sweep(struct supervisor *sup)
{
	if (sup->n_execs < sup->sweep_at)
		return;
	for (size_t i = sup->n_execs; i-- > 0;)
		on_stream_end(sup->execs[i]); /* the last one takes the place of one that goes */
	sup->sweep_at = 2 * sup->n_execs + SWEEP_MIN;
}

int running_start(
	struct supervisor *sup, struct conn *conn, struct spec_exec **spec, struct err *err)
{
	struct running *running;
	struct ends ends;
	int r;

	if (sup->is_paused)
		return err_set(err, -EBUSY, "sandbox %s is paused: `cloche wake %s` first", sup->id,
			sup->id);
	if (conn && conn_tag(conn) && !(*spec)->detach)
		return err_set(err, -EBUSY,
			"this connection is attached to a command already: take another one");
	sweep(sup);
	if (sup->n_execs >= SUPERVISOR_MAX_EXECS)
		return err_set(err, -EAGAIN, "%d commands run in this sandbox already",
			SUPERVISOR_MAX_EXECS);
	r = open_ends(*spec, &ends, err);
	if (r < 0)
		return r;
	running = make(sup, conn, spec);
	r = launch(running, &ends, err);
	close_ends(ends.child);
	if (r < 0) {
		close_ends(ends.own);
		running_free(running);
		return r;
	}
	if (conn)
		answer_started(running);
	watch_streams(running, &ends);
	watch_end(running);
	metering_start(sup);
	return 0;
}

const char *running_id(const struct running *running)
{
	return running->id;
}

void running_add_processes(
	const struct running *running, unsigned *left, struct gauge_processes *sum)
{
	sandbox_exec_add_processes(running->box, left, sum);
}

bool running_is_over(const struct running *running)
{
	return running->is_over;
}

struct conn *running_conn(const struct running *running)
{
	return running->conn;
}

bool running_has_conn(const struct running *running, const struct conn *conn)
{
	return running->conn == conn;
}

void running_stdin(struct running *running, struct slice bytes)
{
	exec_input_add(&running->input, bytes);
}

bool running_takes_stdin(const struct running *running)
{
	return exec_input_is_open(&running->input);
}

int running_resize(struct running *running, unsigned short rows, unsigned short columns)
{
	if (running->streams[0].cast)
		(void)record_cast_resize(
			running->streams[0].cast, rows, columns); /* as its output */
	return sandbox_exec_resize(running->box, rows, columns);
}

int running_signal(struct running *running, int signal)
{
	return sandbox_exec_signal(running->box, signal);
}

void running_cut(struct running *running, int stream)
{
	if (running->spec->terminal)
		(void)sandbox_exec_signal(
			running->box, SIGHUP); /* as of a terminal that is closed */
	else
		exec_stream_cut(&running->streams[stream - 1]);
}

int running_kill(struct running *running)
{
	return sandbox_exec_kill(running->box);
}

void running_drained(struct running *running)
{
	exec_stream_resume(&running->streams[0]);
	exec_stream_resume(&running->streams[1]);
}

void running_detach(struct running *running)
{
	running->conn = NULL;
	exec_input_leave(&running->input);
	exec_stream_attach(&running->streams[0], NULL);
	exec_stream_attach(&running->streams[1], NULL);
}

void running_end(struct running *running)
{
	struct pollfd p = {.fd = sandbox_exec_pidfd(running->box), .events = POLLIN};

	if (running->is_over)
		return;
	(void)sandbox_exec_kill(running->box);
	running->row.interrupted = poll(&p, 1, END_MS) != 1;
	if (!running->row.interrupted)
		(void)sandbox_exec_reap(running->box, &running->row.exit);
	finish(running);
}
