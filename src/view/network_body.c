/* SPDX-License-Identifier: Apache-2.0 */
#include "view/network_body.h"

#include "util/jsonw.h"
#include "util/utf8.h"

/* The fields of one body: of the request, and of the answer. */
struct fields {
	enum event_field body, encoding, truncated, sha256, blob, bytes;
};
static const struct fields both[2] = {
	{EVENT_F_body, EVENT_F_body_encoding, EVENT_F_body_truncated, EVENT_F_body_sha256,
		EVENT_F_body_blob, EVENT_F_body_bytes},
	{EVENT_F_response_body, EVENT_F_response_body_encoding, EVENT_F_response_body_truncated,
		EVENT_F_response_body_sha256, EVENT_F_response_body_blob, EVENT_F_response_bytes},
};

static void *at(const struct event *ev, enum event_field f)
{
	return (char *)ev + event_field_table[f].offset;
}

static void set_text(struct event *ev, enum event_field f, struct slice text)
{
	*(struct slice *)at(ev, f) = text;
	event_mark_field(ev, f);
}

/* One that is named by its own hash, or as long as was declared; one without its secrets may be neither. */
static bool is_whole(const struct event *ev, const struct fields *f, struct slice text)
{
	struct slice name = *(struct slice *)at(ev, f->blob);

	if (event_has_field(ev, f->sha256) && slice_eq(*(struct slice *)at(ev, f->sha256), name))
		return true;
	return event_has_field(ev, f->bytes) && *(event_int *)at(ev, f->bytes) == (int64_t)text.len;
}

static void put(struct event *ev, const struct fields *f, struct str *text)
{
	bool whole = is_whole(ev, f, str_slice(text));
	bool is_text = utf8_is_valid(text->p ? text->p : "", text->len);

	if (!is_text) {
		scoped_str struct str base64 = {0};

		jsonw_base64(&base64, text->p, text->len);
		str_reset(text);
		str_add(text, base64.p, base64.len);
	}
	set_text(ev, f->body, str_slice(text));
	set_text(ev, f->encoding, slice_of(is_text ? "utf8" : "base64"));
	if (!whole)
		return;
	*(event_bool *)at(ev, f->truncated) = false;
	event_drop_field(ev, f->truncated);
}

const struct event *network_body_fill(
	struct network_body *body, const struct event *ev, network_body_fn read, void *ctx)
{
	const struct event *filled = ev;

	for (int i = 0; read && i < 2; i++) {
		struct slice name = *(struct slice *)at(ev, both[i].blob);

		if (!event_has_field(ev, both[i].blob))
			continue;
		str_reset(&body->texts[i]);
		if (read(ctx, name, &body->texts[i]) < 0)
			continue;
		if (filled == ev)
			body->event = *ev;
		filled = &body->event;
		put(&body->event, &both[i], &body->texts[i]);
	}
	return filled;
}

void network_body_done(struct network_body *body)
{
	str_done(&body->texts[0]);
	str_done(&body->texts[1]);
}
