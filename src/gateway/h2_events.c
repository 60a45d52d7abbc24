/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from either connection: frames become streams. */
#include <errno.h>

#include "gateway/h2_parts.h"

static struct h2_stream *find(nghttp2_session *session, int32_t id)
{
	return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int begin_request(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *s;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = h2_stream_new(user, frame->hd.stream_id);
	(void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
	return 0;
}

static int begin_response(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *s = find(session, frame->hd.stream_id);

	if (s && frame->hd.type == NGHTTP2_HEADERS)
		s->block = s->has_response ? &s->spare : &s->response;
	return 0;
}

static struct slice text_of(nghttp2_rcbuf *buf)
{
	nghttp2_vec v = nghttp2_rcbuf_get_buf(buf);

	return (struct slice){.p = (const char *)v.base, .len = v.len};
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
	nghttp2_rcbuf *value, uint8_t flags, void *user)
{
	struct h2_stream *s = find(session, frame->hd.stream_id);

	/* Too many or too long: the stream is reset, the connection goes on. */
	if (s && h2_fields_add(s->block, text_of(name), text_of(value),
			 (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0) < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return 0;
}

static void on_headers(struct h2_stream *s, enum machine_side from, bool last)
{
	bool is_first = from == MACHINE_CLIENT ? s->block == &s->request : s->block == &s->response;

	if (!is_first) {
		h2_stream_trailers(s, from);
		h2_stream_end(s, from);
	} else if (from == MACHINE_CLIENT) {
		h2_stream_request(s, last);
	} else {
		h2_stream_response(s, last);
	}
}

/* The server takes no new streams: the client is told the same, of its own streams that went there. */
static void on_goaway(struct h2_machine *m, uint32_t code)
{
	nghttp2_session *client = m->session[MACHINE_CLIENT];

	(void)nghttp2_submit_goaway(client, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(client), code, NULL, 0);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, struct h2_machine *m,
	enum machine_side from)
{
	struct h2_stream *s = find(session, frame->hd.stream_id);
	bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

	if (frame->hd.type == NGHTTP2_GOAWAY && from == MACHINE_SERVER)
		on_goaway(m, frame->goaway.error_code);
	if (s && frame->hd.type == NGHTTP2_HEADERS)
		on_headers(s, from, last);
	else if (s && frame->hd.type == NGHTTP2_DATA && last)
		h2_stream_end(s, from);
	return 0;
}

static int on_client_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	return on_frame(session, frame, user, MACHINE_CLIENT);
}

static int on_server_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	return on_frame(session, frame, user, MACHINE_SERVER);
}

static int on_data(nghttp2_session *session, int32_t id, enum machine_side from, struct slice data)
{
	struct h2_stream *s = find(session, id);

	if (s)
		h2_stream_data(s, from, data);
	else
		(void)nghttp2_session_consume_connection(session, data.len);
	return 0;
}

static int on_client_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
	size_t len, void *user)
{
	return on_data(
		session, id, MACHINE_CLIENT, (struct slice){.p = (const char *)p, .len = len});
}

static int on_server_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
	size_t len, void *user)
{
	return on_data(
		session, id, MACHINE_SERVER, (struct slice){.p = (const char *)p, .len = len});
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, enum machine_side to)
{
	struct h2_stream *s = find(session, frame->hd.stream_id);

	if (s && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
		(frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
		h2_stream_sent_end(s, to);
	return 0;
}

static int on_client_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	return on_sent(session, frame, MACHINE_CLIENT);
}

static int on_server_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	return on_sent(session, frame, MACHINE_SERVER);
}

static int on_client_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *s = find(session, id);

	if (s)
		h2_stream_closed(s, MACHINE_CLIENT, code);
	return 0;
}

static int on_server_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *s = find(session, id);

	if (s)
		h2_stream_closed(s, MACHINE_SERVER, code);
	return 0;
}

int h2_events_callbacks(nghttp2_session_callbacks **ret, enum machine_side side)
{
	bool client = side == MACHINE_CLIENT;
	nghttp2_session_callbacks *c;

	if (nghttp2_session_callbacks_new(&c) != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(
		c, client ? begin_request : begin_response);
	nghttp2_session_callbacks_set_on_header_callback2(c, on_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(
		c, client ? on_client_frame : on_server_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
		c, client ? on_client_data : on_server_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(
		c, client ? on_client_sent : on_server_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(
		c, client ? on_client_close : on_server_close);
	*ret = c;
	return 0;
}
