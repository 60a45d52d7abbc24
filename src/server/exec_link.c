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
	struct slice input[2];
	bool has_input, is_started;
	size_t sent, taken;        /* of the input */
	bool is_reading, is_freed; /* freed when the reading is over */
};

static void send_frame(struct exec_link *link, enum wire_type type, struct slice payload)
{
	scoped_str struct str out = {0};

	wire_add(&out, type, payload);
	bufferevent_write(link->bev, out.p, out.len);
}

/* What comes next, at most a piece of it. */
static struct slice next_piece(const struct exec_link *link)
{
	size_t at = link->sent;
	const struct slice *part = &link->input[0];

	if (at >= part->len) {
		at -= part->len;
		part++;
	}
	return (struct slice){
		.p = part->p + at, .len = part->len - at < PIECE ? part->len - at : PIECE};
}

static void send_input(struct exec_link *link)
{
	size_t len = link->input[0].len + link->input[1].len;

	while (link->sent < len && link->sent - link->taken < WINDOW) {
		struct slice piece = next_piece(link);

		send_frame(link, WIRE_STDIN, piece);
		link->sent += piece.len;
	}
	if (link->has_input && link->sent == len) {
		send_frame(link, WIRE_STDIN, (struct slice){.p = "", .len = 0});
		link->has_input = false;
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
		link->taken = (size_t)json_integer_value(taken);
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
	memcpy(link->input, ask->input, sizeof(link->input));
	link->has_input = ask->has_input;
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
