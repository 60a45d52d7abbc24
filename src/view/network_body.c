/* SPDX-License-Identifier: Apache-2.0 */
#include "view/network_body.h"

#include <errno.h>

#include "util/jsonw.h"
#include "util/utf8.h"

const struct network_body_fields network_body_fields[NETWORK_BODY_SIDES] = {
	[NETWORK_BODY_SENT] = {EVENT_F_body, EVENT_F_body_encoding, EVENT_F_body_truncated,
		EVENT_F_body_sha256, EVENT_F_body_blob, EVENT_F_body_tail_blob},
	[NETWORK_BODY_GOT] = {EVENT_F_response_body, EVENT_F_response_body_encoding,
		EVENT_F_response_body_truncated, EVENT_F_response_body_sha256,
		EVENT_F_response_body_blob, EVENT_F_response_body_tail_blob},
};

static const void *at(const struct event *ev, enum event_field f)
{
	return (const char *)ev + event_field_table[f].offset;
}

static struct slice text_at(const struct event *ev, enum event_field f)
{
	return event_has_field(ev, f) ? *(const struct slice *)at(ev, f) : (struct slice){0};
}

bool network_body_is_told(const struct event *ev, enum network_body_side side)
{
	const struct network_body_fields *f = &network_body_fields[side];

	return event_has_field(ev, f->body) || event_has_field(ev, f->blob) ||
	       event_has_field(ev, f->tail_blob);
}

/* The bytes of a blob, where the event names one and it can be read. */
static bool read_blob(struct network_body *body, struct slice name, network_body_fn read, void *ctx,
	struct str *out)
{
	int r;

	str_reset(out);
	if (name.len == 0)
		return false;
	r = read ? read(ctx, name, out) : -ENOENT;
	body->changed |= r == -EBADMSG;
	body->gone |= r < 0 && r != -EBADMSG;
	return r >= 0;
}

static bool is_text(const struct str *bytes)
{
	return utf8_is_valid(bytes->p ? bytes->p : "", bytes->len);
}

static void encode(struct str *bytes)
{
	scoped_str struct str base64 = {0};

	jsonw_base64(&base64, bytes->p, bytes->len);
	str_reset(bytes);
	str_add(bytes, base64.p, base64.len);
}

static void read_side(struct network_bodies *bodies, enum network_body_side side,
	const struct event *ev, network_body_fn read, void *ctx)
{
	const struct network_body_fields *f = &network_body_fields[side];
	struct network_body *body = &bodies->sides[side];
	struct str *texts = bodies->texts[side];

	*body = (struct network_body){.encoding = text_at(ev, f->encoding),
		.truncated = event_has_field(ev, f->truncated) &&
	                     *(const event_bool *)at(ev, f->truncated),
		.has_text = event_has_field(ev, f->body),
		.text = text_at(ev, f->body)};
	if (!event_has_field(ev, f->blob) && !event_has_field(ev, f->tail_blob))
		return;
	body->has_text = read_blob(body, text_at(ev, f->blob), read, ctx, &texts[0]);
	body->has_tail = read_blob(body, text_at(ev, f->tail_blob), read, ctx, &texts[1]);
	if (!body->has_text && !body->has_tail)
		return;
	body->encoding = slice_of("utf8");
	if (!is_text(&texts[0]) || !is_text(&texts[1])) {
		encode(&texts[0]);
		encode(&texts[1]);
		body->encoding = slice_of("base64");
	}
	body->text = str_slice(&texts[0]);
	body->tail = str_slice(&texts[1]);
}

void network_body_read(
	struct network_bodies *bodies, const struct event *ev, network_body_fn read, void *ctx)
{
	for (int i = 0; i < NETWORK_BODY_SIDES; i++)
		read_side(bodies, (enum network_body_side)i, ev, read, ctx);
}

void network_body_done(struct network_bodies *bodies)
{
	for (int i = 0; i < NETWORK_BODY_SIDES; i++) {
		str_done(&bodies->texts[i][0]);
		str_done(&bodies->texts[i][1]);
	}
}
