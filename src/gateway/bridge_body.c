/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/bridge_body.h"

#include <assert.h>

#include "gateway/http_copy.h"
#include "proto/gateway_wire.h"
#include "spec/spec_network.h"
#include "util/jsonw.h"
#include "util/utf8.h"

#define CHARACTER_MAX 3 /* bytes of a character that is cut */

static_assert(SPEC_BODY_LIMIT_MAX < GATEWAY_WIRE_MAX, "a body is one frame");
static_assert(HTTP_COPY_MODEL_MAX < GATEWAY_WIRE_MAX, "that of a model API too");

static bool is_text(struct slice bytes)
{
	return utf8_is_valid(bytes.p ? bytes.p : "", bytes.len);
}

static struct slice without_end(struct slice bytes)
{
	for (size_t back = 1; back <= CHARACTER_MAX && back <= bytes.len; back++) {
		const char *p = bytes.p + bytes.len - back;
		unsigned char c = (unsigned char)*p;

		if ((c & 0xc0) == 0x80)
			continue;
		if (c >= 0xc2 && c <= 0xf4 && utf8_len(p, back) == 0)
			bytes.len -= back;
		break;
	}
	return bytes;
}

static struct slice without_start(struct slice bytes)
{
	for (int i = 0; i < CHARACTER_MAX && bytes.len && (bytes.p[0] & 0xc0) == 0x80; i++)
		bytes = (struct slice){.p = bytes.p + 1, .len = bytes.len - 1};
	return bytes;
}

static void send_part(struct channel *channel, enum gateway_frame_type type, struct slice bytes,
	char ret_name[DIGEST_HEX_SIZE])
{
	if (bytes.len == 0)
		return;
	digest_of(bytes.p, bytes.len, ret_name);
	channel_frame(channel, &(struct gateway_frame){.type = type, .rest = bytes});
}

/* A character that is cut is left out on both sides, so that text stays text. */
static void send_cut(struct channel *channel, struct bridge_body *body)
{
	struct slice head = body->view->bytes, tail = body->view->tail;
	struct slice head_text = without_end(head), tail_text = without_start(tail);

	if (is_text(head_text) && is_text(tail_text)) {
		head = head_text;
		tail = tail_text;
	} else {
		body->encoding = slice_of("base64");
	}
	send_part(channel, GATEWAY_BLOB_HEAD, head, body->blob);
	send_part(channel, GATEWAY_BLOB_TAIL, tail, body->tail_blob);
}

static void keep_short(struct bridge_body *body)
{
	body->text = body->view->bytes;
	if (is_text(body->text))
		return;
	jsonw_base64(&body->base64, body->text.p, body->text.len);
	body->text = str_slice(&body->base64);
	body->encoding = slice_of("base64");
}

void bridge_body_send(
	struct channel *channel, const struct http_copy_view *view, struct bridge_body *ret_body)
{
	*ret_body = (struct bridge_body){.view = view, .encoding = slice_of("utf8")};
	if (!view->kept || view->seen == 0)
		return;
	if (view->truncated) {
		send_cut(channel, ret_body);
	} else if (view->bytes.len <= BRIDGE_BODY_INLINE_MAX) {
		keep_short(ret_body);
	} else {
		send_part(channel, GATEWAY_BLOB, view->bytes, ret_body->blob);
		if (!is_text(view->bytes))
			ret_body->encoding = slice_of("base64");
	}
}

void bridge_body_done(struct bridge_body *body)
{
	str_done(&body->base64);
}

static bool is_told(const struct bridge_body *body)
{
	return body->view->kept && body->view->seen > 0;
}

void bridge_body_tell(const struct bridge_body *body, struct event *ev)
{
	if (!is_told(body))
		return;
	if (body->text.len)
		event_set(ev, body, body->text);
	event_set(ev, body_encoding, body->encoding);
	if (body->view->truncated)
		event_set(ev, body_truncated, true);
	if (body->view->whole)
		event_set_text(ev, body_sha256, body->view->sha256);
	if (body->blob[0])
		event_set_text(ev, body_blob, body->blob);
	if (body->tail_blob[0])
		event_set_text(ev, body_tail_blob, body->tail_blob);
}

void bridge_body_tell_response(const struct bridge_body *body, struct event *ev)
{
	if (!is_told(body))
		return;
	if (body->text.len)
		event_set(ev, response_body, body->text);
	event_set(ev, response_body_encoding, body->encoding);
	if (body->view->truncated)
		event_set(ev, response_body_truncated, true);
	if (body->view->whole)
		event_set_text(ev, response_body_sha256, body->view->sha256);
	if (body->blob[0])
		event_set_text(ev, response_body_blob, body->blob);
	if (body->tail_blob[0])
		event_set_text(ev, response_body_tail_blob, body->tail_blob);
}
