/* SPDX-License-Identifier: Apache-2.0 */
/* Input is sent as far as the supervisor has taken what came before. */
#include "server/exec_link.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>

#include "control/client.h"
#include "control/wire.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define WINDOW (256u << 10) /* of input that is under way */
#define PIECE  32768

struct exec_link {
	struct bufferevent *bev;
	struct exec_link_handler handler;
	struct evbuffer *input; /* that is still to be sent */
	bool has_end;           /* of the input: it comes behind that */
	bool is_input_over, is_started;
	uint64_t sent, taken;      /* of the input */
	bool is_reading, is_freed; /* freed when the reading is over */
};

static void send_frame(struct exec_link *link, enum wire_type type, struct slice payload)
{
	scoped_str struct str out = {0};

	wire_add(&out, type, payload);
	bufferevent_write(link->bev, out.p, out.len);
}

/* Pieces of what is there, and the end where there is no more. */
static void send_input(struct exec_link *link)
{
	struct evbuffer_iovec part;

	while (evbuffer_get_length(link->input) > 0 && link->sent - link->taken < WINDOW &&
		evbuffer_peek(link->input, PIECE, NULL, &part, 1) > 0) {
		struct slice piece = {
			.p = part.iov_base, .len = part.iov_len < PIECE ? part.iov_len : PIECE};

		send_frame(link, WIRE_STDIN, piece);
		evbuffer_drain(link->input, piece.len);
		link->sent += piece.len;
	}
	if (link->has_end && evbuffer_get_length(link->input) == 0) {
		send_frame(link, WIRE_STDIN, (struct slice){.p = "", .len = 0});
		link->has_end = false;
	}
}

static void ask_exec(struct exec_link *link, struct slice spec)
{
	scoped_str struct str body = {0}, text = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	jsonw_key(&j, "spec");
	jsonw_raw(&j, spec);
	jsonw_object_end(&j);
	client_request(&text, "exec", str_slice(&body));
	send_frame(link, WIRE_JSON, str_slice(&text));
}

static void on_started(struct exec_link *link, const json_t *message)
{
	const char *id = json_string_value(json_object_get(message, "exec"));
	struct err err = {0};
	int r = client_check(message, &err);

	if (r < 0) {
		link->handler.on_end(link->handler.ctx, r, &err, NULL);
		return;
	}
	link->is_started = true;
	send_input(link);
	link->handler.on_started(link->handler.ctx, id ? id : "");
}

static void on_json(struct exec_link *link, struct slice text)
{
	json_t *message = json_loadb(text.p, text.len, JSON_ALLOW_NUL, NULL);
	const json_t *row = json_object_get(message, "row");
	const json_t *taken = json_object_get(message, "stdin");

	if (json_object_get(message, "ok") && !link->is_started)
		on_started(link, message);
	else if (row)
		link->handler.on_end(link->handler.ctx, 0, NULL, row);
	else if (taken) {
		link->taken = (uint64_t)json_integer_value(taken);
		link->is_input_over |= json_is_true(json_object_get(message, "closed"));
		send_input(link);
	}
	json_decref(message);
}

static void on_frame(struct exec_link *link, const struct wire_frame *frame)
{
	if (frame->type == WIRE_JSON)
		on_json(link, frame->payload);
	else if (frame->type == WIRE_STDOUT || frame->type == WIRE_STDERR)
		link->handler.on_output(
			link->handler.ctx, frame->type == WIRE_STDERR, frame->payload);
}

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct exec_link *link = ctx;
	struct evbuffer *in = bufferevent_get_input(bev);

	link->is_reading = true;
	while (!link->is_freed && evbuffer_get_length(in) > 0) {
		size_t len = evbuffer_get_length(in);
		struct slice bytes = {
			.p = (const char *)evbuffer_pullup(in, (ev_ssize_t)len), .len = len};
		struct wire_frame frame;
		long n = wire_take(bytes, &frame);

		if (n <= 0)
			break;
		on_frame(link, &frame);
		evbuffer_drain(in, (size_t)n);
	}
	link->is_reading = false;
	if (link->is_freed)
		exec_link_free(link);
}

static void on_event(struct bufferevent *bev, short what, void *ctx)
{
	struct exec_link *link = ctx;
	struct err err;
	int r;

	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
		return;
	/* Its supervisor is gone: what it left is written by whoever mends the record. */
	r = err_set(&err, -EPIPE, "the sandbox ended: its record says how");
	link->handler.on_end(link->handler.ctx, r, &err, NULL);
}

struct exec_link *exec_link_new(struct event_base *base, const struct exec_link_ask *ask,
	const struct exec_link_handler *handler)
{
	struct exec_link *link = new0(struct exec_link);

	link->handler = *handler;
	link->input = evbuffer_new();
	for (int i = 0; i < 2; i++)
		if (ask->input[i].len > 0)
			evbuffer_add_reference(
				link->input, ask->input[i].p, ask->input[i].len, NULL, NULL);
	link->is_input_over = link->has_end = ask->has_input && !ask->stays_open;
	link->bev = bufferevent_socket_new(base, ask->fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(link->bev, on_read, NULL, on_event, link);
	bufferevent_enable(link->bev, EV_READ | EV_WRITE);
	ask_exec(link, ask->spec);
	return link;
}

void exec_link_free(struct exec_link *link)
{
	if (!link)
		return;
	link->is_freed = true;
	if (link->is_reading)
		return;
	bufferevent_free(link->bev);
	evbuffer_free(link->input);
	free(link);
}

void exec_link_hold(struct exec_link *link, bool is_held)
{
	if (is_held)
		bufferevent_disable(link->bev, EV_READ);
	else
		bufferevent_enable(link->bev, EV_READ);
}

void exec_link_send(struct exec_link *link, const char *request, const char *body)
{
	scoped_str struct str text = {0};

	client_request(&text, request, slice_of(body));
	send_frame(link, WIRE_JSON, str_slice(&text));
}

void exec_link_feed(struct exec_link *link, struct slice bytes, bool is_end)
{
	evbuffer_add(link->input, bytes.p, bytes.len);
	link->has_end |= is_end;
	link->is_input_over |= is_end;
	if (link->is_started)
		send_input(link);
}

size_t exec_link_untaken(const struct exec_link *link)
{
	return evbuffer_get_length(link->input) + (size_t)(link->sent - link->taken);
}

bool exec_link_is_input_over(const struct exec_link *link)
{
	return link->is_input_over;
}
