/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/exec_follow.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/exec_signals.h"
#include "remote/exec_output.h"
#include "remote/input_sender.h"
#include "remote/request.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define PATIENCE_MS 120000 /* how long a server may be away */
#define FIRST_MS    50     /* until the first try */
#define PAUSE_MS    500    /* between two others */
#define TURN_MS     60000
#define SIGNALS_MAX 3 /* whoever asks that often wants to be gone */

struct follow {
	struct link *link;
	const char *sandbox;
	char *body;
	char once[REQUEST_ONCE_SIZE], exec[ID_SIZE]; /* exec "": not known yet */
	struct transfer *stream, *row, *kill;        /* under way; NULL: none */
	struct exec_output output;
	struct input_sender input;
	struct exec_outcome *outcome;
	int signals, n_signals;
	bool is_sent; /* it may have been started */
	bool wants_kill, is_over;
	int64_t lost_ms, again_ms; /* since when the server is away; when to try again */
	int failure;               /* negative: for good */
	struct err err;
};

static int64_t now_ms(void)
{
	return clock_mono_ns() / CLOCK_NS_PER_MS;
}

/* ---- its end ---- */

static void take_row(struct follow *f, struct slice json)
{
	json_t *row = json_loadb(json.p ? json.p : "", json.len, JSON_ALLOW_NUL, NULL);

	if (!json_object_get(row, "exec")) {
		f->failure = err_set(&f->err, -EIO, "what %s says of the command's end is no row",
			f->link->address.shown);
	} else {
		exec_output_complete(&f->output, row);
		exec_outcome_read(row, f->outcome);
	}
	json_decref(row);
	f->is_over = true;
}

static void fail(struct follow *f, int r)
{
	f->failure = r;
	f->is_over = true;
}

/* ---- its output ---- */

static void take_start(struct follow *f, struct slice json)
{
	json_t *start = json_loadb(json.p, json.len, 0, NULL);
	const char *id = json_string_value(json_object_get(start, "exec"));

	if (id && id_is_valid("ex", id)) {
		memcpy(f->exec, id, ID_SIZE);
		memcpy(f->outcome->exec_id, id, ID_SIZE);
		input_sender_begin(&f->input, f->sandbox, id);
	}
	json_decref(start);
}

static void take_error(struct follow *f, struct slice json)
{
	json_t *problem = json_loadb(json.p, json.len, JSON_ALLOW_NUL, NULL);
	const char *detail = json_string_value(json_object_get(problem, "detail"));

	fail(f, err_set(&f->err, -EIO, "%s",
			detail ? detail : "the command did not come to an end"));
	json_decref(problem);
}

static int on_event(void *ctx, const struct sse_event *event)
{
	struct follow *f = ctx;
	int r = 0;

	f->lost_ms = 0;
	if (slice_is(event->name, "start"))
		take_start(f, event->data);
	else if (slice_is(event->name, "stdout"))
		r = exec_output_take(&f->output, STDOUT_FILENO, event->data);
	else if (slice_is(event->name, "stderr"))
		r = exec_output_take(&f->output, STDERR_FILENO, event->data);
	else if (slice_is(event->name, "exit"))
		take_row(f, event->data);
	else if (slice_is(event->name, "error"))
		take_error(f, event->data);
	if (r == -EPIPE) {
		/* As from a pipe of its own, on which it writes no more. */
		f->wants_kill = true;
		log_info("stdout is read by nobody any more: the command is killed");
	}
	return r == -EBADMSG ? err_set(&f->err, r, "the output of the command cannot be read") : 0;
}

/* ---- what is under way ---- */

static void begin_stream(struct follow *f)
{
	scoped_mem char *path = mem_printf("/v1/sandboxes/%s/exec", f->sandbox);

	f->stream = transfer_start(f->link, &(struct ask){.method = "POST",
						    .path = path,
						    .accept = "text/event-stream, application/json",
						    .once = f->once,
						    .body = slice_of(f->body),
						    .on_event = on_event,
						    .ctx = f});
}

static void begin_row(struct follow *f)
{
	scoped_mem char *path = mem_printf("/v1/sandboxes/%s/exec/%s", f->sandbox, f->exec);

	f->row = transfer_start(f->link, &(struct ask){.path = path});
}

static void begin_kill(struct follow *f)
{
	scoped_mem char *path = mem_printf("/v1/sandboxes/%s/exec/%s/kill", f->sandbox, f->exec);

	f->wants_kill = false;
	f->kill = transfer_start(f->link, &(struct ask){.method = "POST", .path = path});
}

static void go_on(struct follow *f)
{
	if (f->wants_kill && f->exec[0] && !f->kill)
		begin_kill(f);
	if (f->stream || f->row || now_ms() < f->again_ms)
		return;
	if (f->exec[0])
		begin_row(f);
	else
		begin_stream(f);
}

/* Something that passes: tried again, for some time. */
static void try_again(struct follow *f, int r)
{
	int64_t now = now_ms();

	if (!f->lost_ms) {
		f->lost_ms = now;
		log_info("%s: the command goes on, and its end is waited for", f->err.msg);
	}
	f->again_ms = now + (f->lost_ms == now ? FIRST_MS : PAUSE_MS);
	if (now - f->lost_ms > PATIENCE_MS)
		fail(f, r);
}

static void end_stream(struct follow *f)
{
	scoped(transfer) struct transfer *stream = take(&f->stream);
	int r = request_check(f->link, stream, &f->err);
	char code[32];

	if (f->is_over)
		return;
	request_code(stream, code);
	/* It has ended meanwhile, and this is what was kept of that. */
	if (r == 0 && !stream->is_stream)
		take_row(f, str_slice(&stream->body));
	else if (r == 0 || r == -ECONNRESET)
		try_again(f, err_set(&f->err, -ECONNRESET, "the connection to %s was lost",
				     f->link->address.shown));
	else if (f->is_sent && (r == -ECONNREFUSED || r == -EAGAIN || strcmp(code, "busy") == 0))
		try_again(f, r);
	else
		fail(f, r);
	f->is_sent = f->is_sent || stream->status || r == -ECONNRESET;
	if (strcmp(code, "busy") == 0)
		f->lost_ms = 0; /* it is at work: that may take as long as it takes */
}

static void end_row(struct follow *f)
{
	scoped(transfer) struct transfer *row = take(&f->row);
	int r = request_check(f->link, row, &f->err);

	if (r == -ENOENT) { /* its row comes with its end */
		f->again_ms = now_ms() + PAUSE_MS;
		f->lost_ms = 0;
	} else if (r == 0)
		take_row(f, str_slice(&row->body));
	else if (r == -ECONNREFUSED || r == -ECONNRESET || r == -EAGAIN)
		try_again(f, r);
	else
		fail(f, r);
}

static void end_kill(struct follow *f)
{
	scoped(transfer) struct transfer *kill = take(&f->kill);
	struct err err = {0};

	if (request_check(f->link, kill, &err) < 0 && !f->is_over)
		log_warn("the command could not be killed: %s", err.msg);
}

static void settle(struct follow *f)
{
	if (f->stream && f->stream->is_over)
		end_stream(f);
	if (f->row && f->row->is_over)
		end_row(f);
	if (f->kill && f->kill->is_over)
		end_kill(f);
}

/* ---- signals ---- */

static void on_signal(struct follow *f)
{
	struct signalfd_siginfo info;

	if (read(f->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		return;
	f->wants_kill = true;
	if (++f->n_signals == 1)
		log_warn("SIG%s: the command is killed, with all that it started",
			sigabbrev_np((int)info.ssi_signo));
	if (f->n_signals >= SIGNALS_MAX)
		fail(f, err_set(&f->err, -EINTR, "no longer waiting for %s: the command may go on",
				f->link->address.shown));
}

static int wait_ms(const struct follow *f)
{
	int64_t left = f->again_ms - now_ms();
	int own = f->stream || f->row ? TURN_MS : left > 0 ? (int)left : 0;
	int input = input_sender_wait_ms(&f->input);

	return input >= 0 && input < own ? input : own;
}

static void run(struct follow *f)
{
	while (!f->is_over) {
		struct pollfd fds[] = {{.fd = f->signals, .events = POLLIN},
			{.fd = STDIN_FILENO, .events = POLLIN}};

		go_on(f);
		input_sender_work(&f->input, f->link);
		fds[1].fd = input_sender_wants(&f->input) ? STDIN_FILENO : -1;
		link_work(f->link, fds, fds[1].fd < 0 ? 1 : 2, wait_ms(f));
		if (fds[0].revents)
			on_signal(f);
		if (fds[1].revents)
			input_sender_read(&f->input);
		settle(f);
	}
}

int exec_follow(const struct cli *cli, const char *sandbox, json_t *body, bool has_stdin,
	struct exec_outcome *ret_outcome, struct err *err)
{
	struct follow f = {.link = link_of(cli), .sandbox = sandbox, .outcome = ret_outcome};
	sigset_t before;

	*ret_outcome = (struct exec_outcome){0};
	f.input.is_over = !has_stdin || !input_sender_has_any(&f.input);
	if (!f.input.is_over)
		json_object_set_new(body, "stdin_open", json_true());
	f.body = json_dumps(body, JSON_COMPACT);
	request_new_once(f.once);
	f.signals = exec_signals_open(&before);
	run(&f);
	transfer_free(f.stream);
	transfer_free(f.row);
	transfer_free(f.kill);
	input_sender_done(&f.input);
	close(f.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	free(f.body);
	if (ret_outcome->exit_status == 0 && exec_output_is_lost(&f.output))
		ret_outcome->exit_status = CLI_FAILURE;
	if (f.failure < 0)
		*err = f.err;
	return f.failure;
}
