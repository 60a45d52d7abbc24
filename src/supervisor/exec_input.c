/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/exec_input.h"

#include <errno.h>
#include <unistd.h>

#include "util/fdio.h"

static void close_fd(struct exec_input *input)
{
	loop_io_free(input->io);
	input->io = NULL;
	if (input->owns_fd && input->fd >= 0)
		close(input->fd);
	input->fd = -1;
	str_done(&input->pending);
	input->sent = 0;
}

static void tell_taken(struct exec_input *input, size_t n)
{
	scoped_str struct str text = {0};

	input->taken += n;
	if (!input->conn)
		return;
	str_printf(&text, "{\"stdin\":%llu%s}", (unsigned long long)input->taken,
		exec_input_is_open(input) || input->at_end ? "" : ",\"closed\":true");
	conn_send(input->conn, WIRE_JSON, str_slice(&text));
}

/* What the program will not read any more is taken all the same, so that the client does not wait. */
static void drop_all(struct exec_input *input)
{
	size_t left = input->pending.len - input->sent;

	close_fd(input);
	if (left > 0)
		tell_taken(input, left);
}

static void flush(struct exec_input *input)
{
	size_t n_taken = 0;

	while (input->sent < input->pending.len) {
		ssize_t n = write(input->fd, input->pending.p + input->sent,
			input->pending.len - input->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			drop_all(input);
			break;
		}
		input->sent += (size_t)n;
		n_taken += (size_t)n;
	}
	if (n_taken > 0)
		tell_taken(input, n_taken);
	if (input->fd < 0)
		return;
	if (input->sent < input->pending.len) {
		loop_io_set(input->io, LOOP_WRITE);
		return;
	}
	str_reset(&input->pending);
	input->sent = 0;
	loop_io_set(input->io, 0);
	if (input->at_end && input->owns_fd)
		close_fd(input);
}

static void on_writable(void *ctx, unsigned what)
{
	flush(ctx);
}

void exec_input_init(
	struct exec_input *input, struct loop *loop, int fd, bool owns_fd, struct conn *conn)
{
	*input = (struct exec_input){.fd = fd, .owns_fd = owns_fd, .conn = conn};
	(void)fdio_set_nonblock(fd, true);
	input->io = loop_io_new(loop, fd, 0, on_writable, input);
}

void exec_input_done(struct exec_input *input)
{
	close_fd(input);
}

bool exec_input_is_open(const struct exec_input *input)
{
	return input->fd >= 0 && !input->at_end;
}

void exec_input_leave(struct exec_input *input)
{
	input->conn = NULL;
	if (input->owns_fd && exec_input_is_open(input))
		exec_input_add(input, (struct slice){.p = "", .len = 0});
}

/* A terminal has no end: its line discipline makes one of this key, once for the line that was begun and once
 * for the end itself. */
static void add_end_keys(struct exec_input *input)
{
	static const char key = 'D' & 0x1f;

	if (input->is_in_line)
		str_putc(&input->pending, key);
	str_putc(&input->pending, key);
}

void exec_input_add(struct exec_input *input, struct slice bytes)
{
	if (input->fd < 0) {
		tell_taken(input, bytes.len);
		return;
	}
	if (bytes.len > 0)
		input->is_in_line = bytes.p[bytes.len - 1] != '\n';
	else if (!input->at_end && !input->owns_fd)
		add_end_keys(input);
	if (bytes.len == 0)
		input->at_end = true;
	if (input->pending.len - input->sent + bytes.len > 2 * EXEC_INPUT_WINDOW + WIRE_MAX)
		return; /* a client that does not keep to the window loses what is beyond it */
	str_add(&input->pending, bytes.p, bytes.len);
	flush(input);
}
