/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/input_sender.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"

#define PIECE    (128u << 10) /* in one request */
#define FULL_MS  100          /* until it is sent again that the command had no room for */
#define PAUSE_MS 500          /* likewise, after a connection was lost */

static int64_t now_ms(void)
{
	return clock_mono_ns() / CLOCK_NS_PER_MS;
}

void input_sender_done(struct input_sender *sender)
{
	transfer_free(sender->sending);
	str_wipe(&sender->piece);
	free(sender->path);
	*sender = (struct input_sender){.is_over = true};
}

static void make_piece(struct input_sender *sender, struct slice bytes)
{
	struct jsonw j = jsonw_to(&sender->piece);

	str_reset(&sender->piece);
	request_new_once(sender->once);
	jsonw_object(&j);
	if (bytes.len > 0) {
		jsonw_key(&j, "data_b64");
		str_putc(&sender->piece, '"');
		jsonw_base64(&sender->piece, bytes.p, bytes.len);
		str_putc(&sender->piece, '"');
	} else {
		jsonw_kbool(&j, "eof", true);
		sender->is_last = true;
	}
	jsonw_object_end(&j);
}

void input_sender_read(struct input_sender *sender)
{
	char buf[PIECE];
	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	make_piece(sender, (struct slice){buf, n > 0 ? (size_t)n : 0});
	explicit_bzero(buf, n > 0 ? (size_t)n : 0);
}

bool input_sender_has_any(struct input_sender *sender)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	if (poll(&input, 1, 0) == 1)
		input_sender_read(sender);
	sender->is_over = sender->is_last;
	return !sender->is_over;
}

void input_sender_begin(struct input_sender *sender, const char *sandbox, const char *exec)
{
	if (!sender->path && !sender->is_over)
		sender->path = mem_printf("/v1/sandboxes/%s/exec/%s/stdin", sandbox, exec);
}

bool input_sender_wants(const struct input_sender *sender)
{
	return sender->path && !sender->is_over && sender->piece.len == 0;
}

/* What ends the input without a fault: the command has, or reads no more. */
static bool is_end(const char *code)
{
	return strcmp(code, "ended") == 0 || strcmp(code, "stdin_closed") == 0;
}

static void settle(struct input_sender *sender, struct link *link)
{
	scoped(transfer) struct transfer *sent = take(&sender->sending);
	struct err err = {0};
	int r = request_check(link, sent, &err);
	char code[32];

	request_code(sent, code);
	if (r == 0) {
		str_reset(&sender->piece);
		sender->is_over = sender->is_last;
	} else if (strcmp(code, "stdin_full") == 0) {
		sender->again_ms = now_ms() + FULL_MS;
	} else if (r == -ECONNREFUSED || r == -ECONNRESET || r == -EAGAIN ||
		   strcmp(code, "busy") == 0) {
		sender->again_ms = now_ms() + PAUSE_MS;
	} else {
		if (!is_end(code))
			log_warn("no more of stdin goes to the command: %s", err.msg);
		sender->is_over = true;
	}
}

void input_sender_work(struct input_sender *sender, struct link *link)
{
	if (sender->sending && sender->sending->is_over)
		settle(sender, link);
	if (!sender->path || sender->is_over || sender->sending || sender->piece.len == 0 ||
		now_ms() < sender->again_ms)
		return;
	sender->sending = transfer_start(link, &(struct ask){.method = "POST",
						       .path = sender->path,
						       .once = sender->once,
						       .body = str_slice(&sender->piece)});
}

int input_sender_wait_ms(const struct input_sender *sender)
{
	int64_t left = sender->again_ms - now_ms();

	if (!sender->path || sender->is_over || sender->sending || sender->piece.len == 0)
		return -1;
	return left > 0 ? (int)left : 0;
}
