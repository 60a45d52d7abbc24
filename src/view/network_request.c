/* SPDX-License-Identifier: Apache-2.0 */
#include "view/network_request.h"

#include "util/clock.h"
#include "util/jsonw.h"

#define NS_PER_MS 1000000

static void write_int(struct jsonw *j, const struct event *ev, enum event_field f)
{
	const struct event_field_info *info = &event_field_table[f];

	if (event_has_field(ev, f))
		jsonw_kint(j, info->name, *(const event_int *)((const char *)ev + info->offset));
	else
		jsonw_knull(j, info->name);
}

static struct slice text_at(const struct event *ev, enum event_field f)
{
	return *(const struct slice *)((const char *)ev + event_field_table[f].offset);
}

static void write_text(struct jsonw *j, const struct event *ev, enum event_field f)
{
	if (event_has_field(ev, f))
		jsonw_kslice(j, event_field_table[f].name, text_at(ev, f));
	else
		jsonw_knull(j, event_field_table[f].name);
}

/* Those that say something only where they are there. */
static void write_more(struct jsonw *j, const struct event *ev, enum event_field f)
{
	if (event_has_field(ev, f))
		write_text(j, ev, f);
}

static void write_raw(struct jsonw *j, const struct event *ev, enum event_field f)
{
	jsonw_key(j, event_field_table[f].name);
	jsonw_raw(j, event_has_field(ev, f) ? text_at(ev, f) : slice_of("null"));
}

static void write_flag(struct jsonw *j, const struct event *ev, enum event_field f)
{
	const struct event_field_info *info = &event_field_table[f];

	jsonw_kbool(j, info->name,
		event_has_field(ev, f) && *(const bool *)((const char *)ev + info->offset));
}

/* What views have beside the fields of events. */
static const struct {
	const char *tail, *gone, *changed, *left_out;
} keys[NETWORK_BODY_SIDES] = {
	[NETWORK_BODY_SENT] = {"body_tail", "body_gone", "body_changed", "body_left_out"},
	[NETWORK_BODY_GOT] = {"response_body_tail", "response_body_gone", "response_body_changed",
		"response_body_left_out"},
};

static void write_text_of(struct jsonw *j, enum network_body_side side, const struct event *ev,
	const struct network_body *body)
{
	const char *name = event_field_table[network_body_fields[side].body].name;

	if (body && body->has_text)
		jsonw_kslice(j, name, body->text);
	else
		jsonw_knull(j, name);
	if (body && body->has_tail)
		jsonw_kslice(j, keys[side].tail, body->tail);
	if (body && body->gone)
		jsonw_kbool(j, keys[side].gone, true);
	if (body && body->changed)
		jsonw_kbool(j, keys[side].changed, true);
	if (!body && network_body_is_told(ev, side))
		jsonw_kbool(j, keys[side].left_out, true);
}

static void write_names(struct jsonw *j, enum network_body_side side, const struct event *ev)
{
	const struct network_body_fields *f = &network_body_fields[side];

	write_more(j, ev, f->blob);
	write_more(j, ev, f->tail_blob);
}

static void write_encoding(struct jsonw *j, enum network_body_side side, const struct event *ev,
	const struct network_body *body)
{
	const struct network_body_fields *f = &network_body_fields[side];

	if (body && body->encoding.len)
		jsonw_kslice(j, event_field_table[f->encoding].name, body->encoding);
	else
		write_text(j, ev, f->encoding);
	write_flag(j, ev, f->truncated);
}

static const struct network_body *side_of(
	const struct network_bodies *bodies, enum network_body_side side)
{
	return bodies ? &bodies->sides[side] : NULL;
}

static void write_who(struct jsonw *j, const struct event *ev)
{
	char text[CLOCK_TEXT_LEN];

	clock_format(ev->wall_ms, text);
	jsonw_ktext(j, "at", text);
	if (ev->exec.len)
		jsonw_kslice(j, "exec", ev->exec);
	if (ev->pid)
		jsonw_kint(j, "pid", ev->pid);
	if (event_has(ev, flow))
		jsonw_kint(j, "flow", ev->flow);
	jsonw_kint(j, "seq", (int64_t)ev->seq);
	if (event_has(ev, duration_ns))
		jsonw_kint(j, "duration_ms", ev->duration_ns / NS_PER_MS);
	if (ev->secrets.n)
		jsonw_klist(j, "secrets", ev->secrets.items, ev->secrets.n);
	if (ev->stand_ins.n)
		jsonw_klist(j, "stand_ins", ev->stand_ins.items, ev->stand_ins.n);
}

static void write_answer(
	struct jsonw *j, const struct event *ev, const struct network_bodies *bodies)
{
	const struct network_body *body = side_of(bodies, NETWORK_BODY_GOT);

	write_int(j, ev, EVENT_F_status);
	write_raw(j, ev, EVENT_F_response_headers);
	write_int(j, ev, EVENT_F_response_bytes);
	if (event_has(ev, response_body_encoding) || network_body_is_told(ev, NETWORK_BODY_GOT)) {
		write_text_of(j, NETWORK_BODY_GOT, ev, body);
		write_encoding(j, NETWORK_BODY_GOT, ev, body);
	}
	write_more(j, ev, EVENT_F_response_body_sha256);
	write_names(j, NETWORK_BODY_GOT, ev);
}

void network_request_json(
	struct str *out, const struct event *ev, const struct network_bodies *bodies)
{
	const struct network_body *body = side_of(bodies, NETWORK_BODY_SENT);
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kslice(&j, "method", ev->method);
	jsonw_kslice(&j, "url", ev->url);
	write_raw(&j, ev, EVENT_F_headers);
	write_text_of(&j, NETWORK_BODY_SENT, ev, body);
	write_int(&j, ev, EVENT_F_body_bytes);
	write_encoding(&j, NETWORK_BODY_SENT, ev, body);
	write_text(&j, ev, EVENT_F_body_sha256);
	write_names(&j, NETWORK_BODY_SENT, ev);
	if (event_has(ev, request_bytes))
		write_int(&j, ev, EVENT_F_request_bytes);
	write_answer(&j, ev, bodies);
	write_text(&j, ev, EVENT_F_protocol);
	write_more(&j, ev, EVENT_F_upgrade);
	write_more(&j, ev, EVENT_F_error);
	write_who(&j, ev);
	jsonw_object_end(&j);
}

void network_request_message_json(
	struct str *out, const struct event *ev, const struct network_bodies *bodies)
{
	const struct network_body *body = side_of(bodies, NETWORK_BODY_SENT);
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kslice(&j, "direction", ev->direction);
	write_int(&j, ev, EVENT_F_opcode);
	if (event_has_field(ev, EVENT_F_compressed))
		write_flag(&j, ev, EVENT_F_compressed);
	write_int(&j, ev, EVENT_F_bytes);
	write_text_of(&j, NETWORK_BODY_SENT, ev, body);
	write_encoding(&j, NETWORK_BODY_SENT, ev, body);
	write_more(&j, ev, EVENT_F_body_sha256);
	write_names(&j, NETWORK_BODY_SENT, ev);
	write_more(&j, ev, EVENT_F_url);
	write_more(&j, ev, EVENT_F_error);
	write_who(&j, ev);
	jsonw_object_end(&j);
}
