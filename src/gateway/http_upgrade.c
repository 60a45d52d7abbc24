/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket behind a 101: frames go on as they came, their heads written anew; messages are told of. */
#include <errno.h>
#include <stdlib.h>

#include "gateway/http_parts.h"
#include "util/mem.h"

static void init_copy(struct http_machine *m, struct http_copy *copy)
{
	http_copy_done(copy);
	/* Both ways, whatever holds for answers: some agents hold their whole conversation so. */
	http_copy_init(copy, &m->setup, false, http_is_model_api(m->pair->turn.host.p));
}

static bool agreed_to_compress(const struct http_pair *pair)
{
	struct slice extensions = http1_find(&pair->response, "sec-websocket-extensions");

	return extensions.len && memmem(extensions.p, extensions.len, "permessage-deflate", 18);
}

void http_upgrade_begin(struct http_machine *m)
{
	bool may_compress = agreed_to_compress(m->pair);

	m->pair->turn.upgrade = "websocket";
	m->pair->turn.out.put = 0;
	m->pair->turn.got.whole = true;
	http_turn_report(&m->pair->turn);
	m->ws = new0_n(struct http_ws_side, MACHINE_SIDES);
	for (int i = 0; i < MACHINE_SIDES; i++)
		m->ws[i].reader = (struct ws_reader){
			.from_client = i == MACHINE_CLIENT, .may_compress = may_compress};
}

/* error: NULL for a whole one. */
static void report(struct http_machine *m, enum machine_side from, struct http_copy *copy,
	int opcode, const char *error)
{
	struct http_message message = {.url = m->pair->turn.url.p,
		.from = from,
		.opcode = opcode,
		.compressed = opcode < WS_CLOSE && m->ws[from].compressed,
		.error = error};

	copy->whole = !error;
	http_copy_view(copy, &message.body);
	m->setup.hooks->on_message(m->setup.arg, &message);
	http_copy_done(copy);
}

/* What never ended was sent all the same. */
static void report_rest(struct http_machine *m, enum machine_side from)
{
	static const char error[] = "it was not finished";
	struct http_ws_side *side = &m->ws[from];

	if (side->in_message)
		report(m, from, &side->message, side->opcode, error);
	if (side->in_control)
		report(m, from, &side->control, (int)side->reader.frame.opcode, error);
}

void http_upgrade_done(struct http_machine *m)
{
	for (enum machine_side from = MACHINE_CLIENT; m->ws && m->pair && from < MACHINE_SIDES;
		from++)
		report_rest(m, from);
	for (int i = 0; m->ws && i < MACHINE_SIDES; i++) {
		http_copy_done(&m->ws[i].message);
		http_copy_done(&m->ws[i].control);
	}
	free(m->ws);
	m->ws = NULL;
}

static void begin_frame(struct http_machine *m, enum machine_side from)
{
	struct http_ws_side *side = &m->ws[from];
	const struct ws_frame *frame = &side->reader.frame;

	ws_add_head(&m->out[machine_other(from)].bytes, frame);
	if (ws_is_control(frame->opcode)) {
		init_copy(m, &side->control);
		side->in_control = true;
	} else if (frame->opcode != WS_CONTINUATION) {
		init_copy(m, &side->message);
		side->in_message = true;
		side->opcode = frame->opcode;
		side->compressed = frame->compressed;
	}
}

static void end_frame(struct http_machine *m, enum machine_side from)
{
	struct http_ws_side *side = &m->ws[from];
	const struct ws_frame *frame = &side->reader.frame;

	if (ws_is_control(frame->opcode)) {
		report(m, from, &side->control, (int)frame->opcode, NULL);
		side->in_control = false;
	} else if (frame->fin) {
		report(m, from, &side->message, side->opcode, NULL);
		side->in_message = false;
	}
}

static void break_off(struct http_machine *m, const char *why)
{
	http_turn_refuse(&m->pair->turn, 0, "unreadable WebSocket", why);
	m->error = -EPROTO;
}

size_t http_upgrade_take(struct http_machine *m, enum machine_side from, struct slice in)
{
	struct http_ws_side *side = &m->ws[from];
	struct str *out = &m->out[machine_other(from)].bytes;
	struct ws_piece piece;
	long n = ws_read(&side->reader, in, &piece);

	if (n < 0) {
		break_off(m, side->reader.fault);
		return in.len;
	}
	if (piece.begins)
		begin_frame(m, from);
	str_reset(&m->plain);
	ws_unmask(&side->reader.frame, piece.at, piece.payload, &m->plain);
	/* Values are not put into messages, but a stand-in is not to go where its value may not: what would complete
	 * it there is not sent. */
	if (from == MACHINE_CLIENT && http_turn_watch(&m->pair->turn, str_slice(&m->plain)) < 0) {
		m->error = -EACCES;
		return in.len;
	}
	http_copy_add(ws_is_control(side->reader.frame.opcode) ? &side->control : &side->message,
		str_slice(&m->plain));
	str_add(out, piece.payload.p, piece.payload.len);
	if (piece.ends)
		end_frame(m, from);
	return (size_t)n;
}
