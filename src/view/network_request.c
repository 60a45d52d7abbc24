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

static void write_body(struct jsonw *j, const struct event *ev, enum event_field body, bool bodies)
{
	if (bodies || !event_has_field(ev, body)) {
		write_text(j, ev, body);
		return;
	}
	jsonw_knull(j, event_field_table[body].name);
	jsonw_kbool(j, "body_left_out", true);
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

static void write_answer(struct jsonw *j, const struct event *ev, bool bodies)
{
	write_int(j, ev, EVENT_F_status);
	write_raw(j, ev, EVENT_F_response_headers);
	write_int(j, ev, EVENT_F_response_bytes);
	if (event_has(ev, response_body)) {
		if (bodies)
			write_text(j, ev, EVENT_F_response_body);
		write_text(j, ev, EVENT_F_response_body_encoding);
		write_flag(j, ev, EVENT_F_response_body_truncated);
	}
	write_more(j, ev, EVENT_F_response_body_sha256);
	write_more(j, ev, EVENT_F_response_body_blob);
}

void network_request_json(struct str *out, const struct event *ev, bool bodies)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kslice(&j, "method", ev->method);
	jsonw_kslice(&j, "url", ev->url);
	write_raw(&j, ev, EVENT_F_headers);
	write_body(&j, ev, EVENT_F_body, bodies);
	write_int(&j, ev, EVENT_F_body_bytes);
	write_text(&j, ev, EVENT_F_body_encoding);
	write_flag(&j, ev, EVENT_F_body_truncated);
	write_text(&j, ev, EVENT_F_body_sha256);
	write_more(&j, ev, EVENT_F_body_blob);
	write_answer(&j, ev, bodies);
	write_text(&j, ev, EVENT_F_protocol);
	write_more(&j, ev, EVENT_F_upgrade);
	write_more(&j, ev, EVENT_F_error);
	write_who(&j, ev);
	jsonw_object_end(&j);
}

void network_request_message_json(struct str *out, const struct event *ev, bool bodies)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kslice(&j, "direction", ev->direction);
	write_int(&j, ev, EVENT_F_opcode);
	if (event_has_field(ev, EVENT_F_compressed))
		write_flag(&j, ev, EVENT_F_compressed);
	write_int(&j, ev, EVENT_F_bytes);
	write_body(&j, ev, EVENT_F_body, bodies);
	write_text(&j, ev, EVENT_F_body_encoding);
	write_flag(&j, ev, EVENT_F_body_truncated);
	write_more(&j, ev, EVENT_F_body_sha256);
	write_more(&j, ev, EVENT_F_body_blob);
	write_more(&j, ev, EVENT_F_url);
	write_who(&j, ev);
	jsonw_object_end(&j);
}
