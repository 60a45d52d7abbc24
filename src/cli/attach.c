/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input is read only as far as the supervisor has taken what was sent before (a window), so that a
 * message - a signal, a new size - never waits behind input that the command does not read. */
#include "cli/attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "cli/ask_terminal.h"
#include "cli/exec_signals.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/log.h"

#define WINDOW    (256u << 10) /* of input that is under way */
#define READ_SIZE 32768

struct attach {
	struct session *session;
	const struct spec_exec *exec;
	int signals;
	uint64_t sent, taken; /* bytes of input */
	bool input_ended, is_over;
	int output_errors[3]; /* by descriptor: why nothing is passed on any more */
	int n_terminations;
	struct termios saved;
	bool is_raw;
	struct exec_outcome *outcome;
	struct ask_terminal *asks;
};

void attach_window(int fd, unsigned short *ret_rows, unsigned short *ret_columns)
{
	struct winsize size = {0};

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
}

static void send_message(struct attach *attach, const char *request, const char *body)
{
	scoped_str struct str text = {0};

	client_request(&text, request, slice_of(body));
	(void)client_send(attach->session->client, WIRE_JSON,
		str_slice(&text)); /* its end shows in the next read */
}

static void on_signal(struct attach *attach)
{
	struct signalfd_siginfo info;
	char body[64];
	unsigned short rows, columns;

	if (read(attach->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		attach_window(STDIN_FILENO, &rows, &columns);
		snprintf(body, sizeof(body), "{\"rows\":%u,\"columns\":%u}", rows, columns);
		send_message(attach, "resize", body);
		return;
	}
	/* Asked a third time to end, it ends. */
	if (++attach->n_terminations > 2) {
		send_message(attach, "signal", "{\"signal\":9}");
		return;
	}
	snprintf(body, sizeof(body), "{\"signal\":%u}", info.ssi_signo);
	send_message(attach, "signal", body);
}

static void read_input(struct attach *attach)
{
	char buf[READ_SIZE];
	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		attach->input_ended = true;
		n = 0; /* an empty frame is the end of file */
	}
	attach->sent += (uint64_t)n;
	(void)client_send(
		attach->session->client, WIRE_STDIN, (struct slice){.p = buf, .len = (size_t)n});
}

static void take_row(struct attach *attach, const json_t *row)
{
	exec_outcome_read(row, attach->outcome);
	attach->is_over = true;
}

static int on_json(struct attach *attach, struct slice text, struct err *err)
{
	json_t *message = json_loadb(text.p, text.len, JSON_ALLOW_NUL, NULL);
	const char *id = json_string_value(json_object_get(message, "exec"));
	int r = 0;

	if (json_object_get(message, "ok"))
		r = client_check(message, err);
	if (id)
		snprintf(attach->outcome->exec_id, sizeof(attach->outcome->exec_id), "%.*s", ID_LEN,
			id);
	if (json_object_get(message, "stdin"))
		attach->taken = (uint64_t)json_integer_value(json_object_get(message, "stdin"));
	if (json_object_get(message, "ask"))
		ask_terminal_take(attach->asks, message);
	if (json_object_get(message, "row"))
		take_row(attach, json_object_get(message, "row"));
	json_decref(message);
	return r;
}

/* A reader that went away, or a descriptor that was closed for us, wanted no more. */
static bool is_loss(int error)
{
	return error != 0 && error != -EPIPE && error != -EBADF;
}

/* Our reader has gone (`| head`), or its disk is full: what still comes is dropped, and the command hears of it
 * as it would from a pipe of its own. */
static void pass_on(struct attach *attach, int fd, struct slice bytes)
{
	char body[32];
	int r;

	if (attach->output_errors[fd])
		return;
	r = fdio_write_all(fd, bytes.p, bytes.len);
	if (r == 0)
		return;
	attach->output_errors[fd] = r;
	if (is_loss(r))
		log_warn("%s cannot be written, output is lost: %s",
			fd == STDOUT_FILENO ? "stdout" : "stderr", strerror(-r));
	snprintf(body, sizeof(body), "{\"stream\":%d}", fd);
	send_message(attach, "cut", body);
}

static int on_frame(struct attach *attach, const struct wire_frame *frame, struct err *err)
{
	switch (frame->type) {
	case WIRE_JSON:
		return on_json(attach, frame->payload, err);
	case WIRE_STDOUT:
		pass_on(attach, STDOUT_FILENO, frame->payload);
		return 0;
	case WIRE_STDERR:
		pass_on(attach, STDERR_FILENO, frame->payload);
		return 0;
	case WIRE_STDIN:
		return 0;
	}
	return 0;
}

/* While a question stands on the terminal, what is typed there is its answer. */
static bool wants_input(const struct attach *attach)
{
	if (ask_terminal_fd(attach->asks) >= 0 && isatty(STDIN_FILENO))
		return false;
	return attach->exec->has_stdin && !attach->input_ended &&
	       attach->sent - attach->taken < WINDOW;
}

/* Frames that came, one after the other, until there is none. */
static int take_frames(struct attach *attach, struct err *err)
{
	struct wire_frame frame;

	while (!attach->is_over) {
		int r = client_poll(attach->session->client, &frame);

		if (r == -EAGAIN)
			return 0;
		if (r <= 0)
			return err_set(err, -EPIPE,
				"the supervisor of %s is gone: `cloche gc` mends what it left",
				attach->session->id);
		r = on_frame(attach, &frame, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int relay(struct attach *attach, struct err *err)
{
	while (!attach->is_over) {
		struct pollfd fds[] = {{.fd = attach->signals, .events = POLLIN},
			{.fd = wants_input(attach) ? STDIN_FILENO : -1, .events = POLLIN},
			{.fd = client_fd(attach->session->client), .events = POLLIN},
			{.fd = attach->session->seal_fd, .events = POLLIN},
			{.fd = ask_terminal_fd(attach->asks), .events = POLLIN}};
		int r;

		if (poll(fds, 5, ask_terminal_wait_ms(attach->asks)) < 0 && errno != EINTR)
			return err_set(err, -errno, "wait: %m");
		if (fds[0].revents)
			on_signal(attach);
		if (fds[1].revents)
			read_input(attach);
		if (fds[3].revents)
			session_serve_seal(attach->session);
		ask_terminal_work(attach->asks, fds[4].revents != 0);
		r = fds[2].revents ? take_frames(attach, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static void make_raw(struct attach *attach)
{
	struct termios raw;

	if (!attach->exec->terminal || tcgetattr(STDIN_FILENO, &attach->saved) < 0)
		return;
	raw = attach->saved;
	cfmakeraw(&raw);
	attach->is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static int ask_exec(struct session *session, const struct spec_exec *exec)
{
	scoped_str struct str spec = {0}, body = {0}, text = {0};
	struct jsonw j = jsonw_to(&body);

	spec_exec_write(&spec, exec);
	jsonw_object(&j);
	jsonw_key(&j, "spec");
	jsonw_raw(&j, str_slice(&spec));
	jsonw_object_end(&j);
	client_request(&text, "exec", str_slice(&body));
	return client_send(session->client, WIRE_JSON, str_slice(&text));
}

static void send_answer(void *ctx, const char *body)
{
	send_message(ctx, "answer", body);
}

int attach_exec(struct session *session, const struct spec_exec *exec,
	struct exec_outcome *ret_outcome, struct err *err)
{
	struct attach attach = {.session = session, .exec = exec, .outcome = ret_outcome};
	sigset_t before;
	int r;

	*ret_outcome = (struct exec_outcome){0};
	attach.asks = ask_terminal_new(&(struct ask_terminal_config){
		.actor = exec->actor, .send = send_answer, .ctx = &attach});
	attach.signals = exec_signals_open(&before);
	make_raw(&attach);
	r = ask_exec(session, exec);
	if (r < 0)
		(void)err_set(err, r, "ask the supervisor of %s: %m", session->id);
	else
		r = relay(&attach, err);
	if (ret_outcome->exit_status == 0 && (is_loss(attach.output_errors[STDOUT_FILENO]) ||
						     is_loss(attach.output_errors[STDERR_FILENO])))
		ret_outcome->exit_status = CLI_FAILURE;
	if (attach.is_raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN,
			&attach.saved); /* a terminal that is gone needs none */
	ask_terminal_free(attach.asks);
	close(attach.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
