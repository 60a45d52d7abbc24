/* SPDX-License-Identifier: Apache-2.0 */
/* asked -> started -> ended (its row is read by a worker) -> answered.
 *
 * Output goes on only as fast as the client of a stream takes it, as through a pipe; nobody reads what waits for no
 * stream. Input is sent as far as the supervisor has taken what came before. */
#include "server/exec_run.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/client.h"
#include "control/wire.h"
#include "server/api.h"
#include "server/indexer.h"
#include "server/launcher_ask.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/utf8.h"

#define WINDOW     (256u << 10) /* of input that is under way */
#define PIECE      32768
#define BACKLOG    (1u << 20) /* of output that waits for a client */
#define EVENT_TYPE "text/event-stream"

struct exec_run {
	struct work work;
	struct call *call;
	struct exec_ask *ask;
	struct bufferevent *bev;
	char exec[ID_SIZE];
	size_t sent, taken; /* of the input */
	struct str held[2]; /* the begin of a character whose end has not come yet */
	bool is_started, is_over;
	int failure; /* negative: it did not come to an end that we know */
	struct err err;
};

void exec_ask_free(struct exec_ask *ask)
{
	if (!ask)
		return;
	scoped_close(&ask->fd);
	str_done(&ask->spec);
	str_done(&ask->input);
	free(ask);
}

static void run_free(struct exec_run *run)
{
	exec_ask_free(run->ask);
	str_done(&run->held[0]);
	str_done(&run->held[1]);
	free(run);
}

/* ---- to the supervisor ---- */

static void send_frame(struct exec_run *run, enum wire_type type, struct slice payload)
{
	scoped_str struct str out = {0};

	wire_add(&out, type, payload);
	bufferevent_write(run->bev, out.p, out.len);
}

static void send_input(struct exec_run *run)
{
	const struct str *input = &run->ask->input;

	while (run->sent < input->len && run->sent - run->taken < WINDOW) {
		size_t n = input->len - run->sent < PIECE ? input->len - run->sent : PIECE;

		send_frame(run, WIRE_STDIN, (struct slice){.p = input->p + run->sent, .len = n});
		run->sent += n;
		if (run->sent == input->len)
			send_frame(run, WIRE_STDIN, (struct slice){.p = "", .len = 0});
	}
}

static void ask_exec(struct exec_run *run)
{
	scoped_str struct str body = {0}, text = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	jsonw_key(&j, "spec");
	jsonw_raw(&j, str_slice(&run->ask->spec));
	jsonw_object_end(&j);
	client_request(&text, "exec", str_slice(&body));
	send_frame(run, WIRE_JSON, str_slice(&text));
}

/* ---- to the client ---- */

static void add_event(struct str *out, const char *name, struct slice data)
{
	str_printf(out, "event: %s\ndata: ", name);
	str_add(out, data.p, data.len);
	str_puts(out, "\n\n");
}

static void write_event(struct exec_run *run, const char *name, struct slice data)
{
	scoped_str struct str out = {0};

	add_event(&out, name, data);
	exchange_write(run->call->exchange, str_slice(&out));
}

/* How many bytes of text can go: not the begin of a character that may still be completed. */
static size_t whole_len(struct slice text)
{
	size_t from = text.len > 3 ? text.len - 3 : 0;

	for (size_t i = text.len; i > from; i--) {
		unsigned char c = (unsigned char)text.p[i - 1];
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;

		if (want)
			return text.len - (i - 1) < want ? i - 1 : text.len;
		if (c < 0x80)
			break;
	}
	return text.len;
}

static void write_text(struct exec_run *run, const char *name, struct slice text)
{
	scoped_str struct str json = {0};
	struct jsonw j = jsonw_to(&json);

	if (text.len == 0)
		return;
	jsonw_object(&j);
	jsonw_kslice(&j, "data", text);
	jsonw_object_end(&j);
	write_event(run, name, str_slice(&json));
}

static void on_output(struct exec_run *run, int stream, struct slice bytes)
{
	static const char *const names[] = {"stdout", "stderr"};
	struct str *held = &run->held[stream];
	size_t n;

	if (!run->ask->is_stream)
		return;
	str_add(held, bytes.p, bytes.len);
	n = whole_len(str_slice(held));
	write_text(run, names[stream], (struct slice){.p = held->p, .len = n});
	memmove(held->p, held->p + n, held->len - n);
	held->len -= n;
	if (exchange_backlog(run->call->exchange) > BACKLOG)
		bufferevent_disable(run->bev, EV_READ);
}

static void on_drained(void *arg)
{
	struct exec_run *run = arg;

	if (run->bev)
		bufferevent_enable(run->bev, EV_READ);
}

static void on_gone(void *arg)
{
	struct exec_run *run = arg;
	scoped_str struct str text = {0};

	if (!run->bev)
		return;
	bufferevent_enable(run->bev, EV_READ); /* it may have been waiting for this client */
	if (!run->ask->kill_when_gone || !run->is_started)
		return;
	client_request(&text, "kill", slice_of(""));
	send_frame(run, WIRE_JSON, str_slice(&text));
}

/* ---- its end ---- */

static int copy_row(const struct store_log_row *row, void *arg)
{
	str_puts(arg, row->json);
	return 0;
}

/* The row was written before we heard of the end; another worker may have indexed it already. */
static int find_row(struct exec_run *run, struct err *err)
{
	struct call *call = run->call;
	int r = indexer_catch_up(
		call->server->indexer, run->ask->sandbox, run->exec, &call->out, err);

	if (r == 0)
		r = store_log_get(call->server->store, call->caller.account, run->ask->sandbox,
			run->exec, copy_row, &call->out, err);
	return r < 0 ? r : 0;
}

static void run_end(struct work *work)
{
	struct exec_run *run = (struct exec_run *)work;
	int r = run->failure;

	if (r == -EPIPE)
		(void)launcher_ask_mend(run->call->server, run->ask->sandbox, NULL);
	if (!run->ask->is_detached && (r == 0 || (r == -EPIPE && run->is_started)))
		r = find_row(run, &run->err);
	if (run->ask->is_detached && r == 0) {
		struct jsonw j = jsonw_to(&run->call->out);

		run->call->status = 202;
		jsonw_object(&j);
		jsonw_ktext(&j, "exec", run->exec);
		jsonw_object_end(&j);
	}
	call_settle(run->call, r, &run->err);
	run->failure = r;
}

static void end_stream(struct exec_run *run)
{
	struct call *call = run->call;

	write_text(run, "stdout", str_slice(&run->held[0]));
	write_text(run, "stderr", str_slice(&run->held[1]));
	write_event(run, run->failure < 0 ? "error" : "exit", str_slice(&call->out));
	exchange_end(call->exchange, true);
	call_free(call);
}

static void end_done(struct work *work)
{
	struct exec_run *run = (struct exec_run *)work;

	if (run->ask->is_stream && run->is_started)
		end_stream(run);
	else
		call_send(run->call);
	run_free(run);
}

static void end(struct exec_run *run, int r)
{
	if (run->is_over)
		return;
	run->is_over = true;
	run->failure = r;
	if (run->bev)
		bufferevent_free(run->bev);
	run->bev = NULL;
	run->work = (struct work){.run = run_end, .done = end_done};
	workers_add(run->call->server->workers, &run->work);
}

/* ---- from the supervisor ---- */

static void on_started(struct exec_run *run, const json_t *message)
{
	const char *id = json_string_value(json_object_get(message, "exec"));
	int r = client_check(message, &run->err);

	if (r < 0) {
		end(run, r);
		return;
	}
	memccpy(run->exec, id ? id : "", '\0', sizeof(run->exec) - 1);
	run->is_started = true;
	if (run->ask->is_detached) {
		end(run, 0);
		return;
	}
	if (run->ask->is_stream) {
		scoped_mem char *start = mem_printf("{\"exec\":\"%s\"}", run->exec);

		exchange_begin(run->call->exchange, 200, EVENT_TYPE);
		write_event(run, "start", slice_of(start));
	}
	send_input(run);
}

static void on_json(struct exec_run *run, struct slice text)
{
	json_t *message = json_loadb(text.p, text.len, JSON_ALLOW_NUL, NULL);
	const json_t *taken = json_object_get(message, "stdin");

	if (json_object_get(message, "ok") && !run->is_started)
		on_started(run, message);
	else if (json_object_get(message, "row"))
		end(run, 0);
	else if (taken) {
		run->taken = (size_t)json_integer_value(taken);
		send_input(run);
	}
	json_decref(message);
}

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct exec_run *run = ctx;
	struct evbuffer *in = bufferevent_get_input(bev);

	while (!run->is_over && evbuffer_get_length(in) > 0) {
		size_t len = evbuffer_get_length(in);
		struct slice bytes = {
			.p = (const char *)evbuffer_pullup(in, (ev_ssize_t)len), .len = len};
		struct wire_frame frame;
		long n = wire_take(bytes, &frame);

		if (n <= 0)
			break;
		if (frame.type == WIRE_JSON)
			on_json(run, frame.payload);
		else if (frame.type == WIRE_STDOUT || frame.type == WIRE_STDERR)
			on_output(run, frame.type == WIRE_STDERR, frame.payload);
		if (!run->is_over)
			evbuffer_drain(in, (size_t)n);
	}
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	struct exec_run *run = ctx;

	/* Its supervisor is gone: the row is made by whoever mends the record. */
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		end(run, err_set(&run->err, -EPIPE, "the sandbox ended: its record says how"));
}

void exec_run(struct call *call)
{
	struct exec_run *run = new0(struct exec_run);

	run->call = call;
	run->ask = take(&call->state);
	call->then = NULL;
	run->bev = bufferevent_socket_new(
		call->server->base, take_fd(&run->ask->fd), BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(run->bev, on_read, NULL, on_event, run);
	bufferevent_enable(run->bev, EV_READ | EV_WRITE);
	exchange_on_gone(call->exchange, on_gone, run);
	exchange_on_drained(call->exchange, on_drained, run);
	ask_exec(run);
}
