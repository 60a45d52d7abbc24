/* SPDX-License-Identifier: Apache-2.0 */
/* One stream: a request and its answer, carried between two connections. */
#include "gateway/h2_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "gateway/http_problem.h"
#include "util/mem.h"

/* The answer is whole, and the client still sends its request. */
static bool is_answered_early(const struct h2_stream *s)
{
	return s->cut && s->to[MACHINE_CLIENT].sent_end && !s->came_whole[MACHINE_CLIENT];
}

/* A client is told to stop when it had the time to read its answer, which shows in what it does next: curl 7.88 loses
 * an answer that it finds together with the reset behind it. */
static void stop_all(struct h2_machine *m)
{
	for (struct h2_stream *s = m->streams; s; s = s->next)
		if (is_answered_early(s))
			h2_stream_reset(s, MACHINE_CLIENT, NGHTTP2_NO_ERROR);
}

static void throw_away(struct h2_stream *s, size_t n)
{
	s->thrown += n;
	if (s->thrown > H2_THROWN)
		h2_stream_reset(s, MACHINE_CLIENT, NGHTTP2_NO_ERROR);
}

struct h2_stream *h2_stream_new(struct h2_machine *m, int32_t id)
{
	struct h2_stream *s = new0(struct h2_stream);

	stop_all(m);
	s->m = m;
	s->id[MACHINE_CLIENT] = id;
	s->block = &s->request;
	s->next = m->streams;
	s->link = &m->streams;
	if (s->next)
		s->next->link = &s->next;
	m->streams = s;
	http_turn_init(&s->turn, &m->setup, "h2");
	return s;
}

/* What came of it. A head that was never whole is told where it was for what it said, not for a connection's end. */
static void tell(struct h2_stream *s)
{
	if (s->turn.refused)
		return;
	if (!s->turn.url.p) {
		if (s->closed[MACHINE_CLIENT])
			http_turn_refuse(&s->turn, 400, HTTP_TURN_UNREADABLE,
				"the head of a request was malformed or too long");
		return;
	}
	if (!s->turn.error && !s->to[MACHINE_CLIENT].sent_end)
		s->turn.error = "the connection was broken off";
	http_turn_report(&s->turn);
}

void h2_stream_free(struct h2_stream *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	tell(s);
	http_turn_done(&s->turn);
	h2_fields_done(&s->request);
	h2_fields_done(&s->response);
	h2_fields_done(&s->spare);
	for (int i = 0; i < MACHINE_SIDES; i++) {
		str_done(&s->to[i].waiting);
		h2_fields_done(&s->to[i].trailers);
	}
	free(s);
}

static size_t fields_hold(const struct h2_fields *fields)
{
	return fields->text.cap + fields->n * sizeof(struct h2_field) +
	       fields->n_views * sizeof(struct http1_field);
}

size_t h2_stream_holds(const struct h2_stream *s)
{
	size_t n = sizeof(*s) + http_turn_holds(&s->turn) + fields_hold(&s->request) +
	           fields_hold(&s->response) + fields_hold(&s->spare);

	for (int i = 0; i < MACHINE_SIDES; i++)
		n += s->to[i].waiting.cap + fields_hold(&s->to[i].trailers);
	return n;
}

void h2_stream_reset(struct h2_stream *s, enum machine_side to, uint32_t code)
{
	if (s->id[to] && !s->closed[to] && s->m->session[to])
		(void)nghttp2_submit_rst_stream(
			s->m->session[to], NGHTTP2_FLAG_NONE, s->id[to], code);
}

/* A head to the client, with a body behind it unless it is the last. */
static void submit_response(struct h2_stream *s, struct h2_block *block, bool last)
{
	nghttp2_data_provider provider = {.source = {.ptr = s}, .read_callback = h2_body_to_client};

	s->has_response = true;
	s->to[MACHINE_CLIENT].has_provider = !last;
	(void)nghttp2_submit_response(s->m->session[MACHINE_CLIENT], s->id[MACHINE_CLIENT],
		h2_block_items(block), block->n, last ? NULL : &provider);
}

/* The document, in place of an answer. Whatever else the client has of the request is not waited for. */
static void answer_refusal(struct h2_stream *s)
{
	struct h2_half *half = &s->to[MACHINE_CLIENT];
	struct h2_block block;
	char status[4];

	s->cut = true;
	status[0] = (char)('0' + s->turn.answer.status / 100 % 10);
	status[1] = (char)('0' + s->turn.answer.status / 10 % 10);
	status[2] = (char)('0' + s->turn.answer.status % 10);
	h2_block_init(&block, 3);
	h2_block_add(&block, slice_of(":status"), (struct slice){.p = status, .len = 3}, false);
	h2_block_add(&block, slice_of("content-type"), slice_of(HTTP_PROBLEM_TYPE), false);
	h2_block_add(&block, slice_of("cache-control"), slice_of("no-store"), false);
	http_turn_problem(&s->turn, &half->waiting);
	half->ended = true;
	submit_response(s, &block, slice_is(s->turn.method, "HEAD"));
	h2_block_done(&block);
}

/* A stand-in is on its way to where it must not go, and that was told. */
static void break_off(struct h2_stream *s)
{
	h2_body_settle(s, MACHINE_SERVER, s->to[MACHINE_SERVER].owed);
	str_done(&s->to[MACHINE_SERVER].waiting);
	s->to[MACHINE_SERVER].at = 0;
	s->cut = true;
	h2_stream_reset(s, MACHINE_SERVER, NGHTTP2_CANCEL);
	if (s->has_response)
		h2_stream_reset(s, MACHINE_CLIENT, NGHTTP2_REFUSED_STREAM);
	else
		answer_refusal(s);
}

void h2_stream_check(struct h2_stream *s)
{
	if (s->turn.url.p && !s->cut && !http_turn_judge_again(&s->turn))
		break_off(s);
}

static void forward_request(struct h2_stream *s, bool last)
{
	nghttp2_data_provider provider = {.source = {.ptr = s}, .read_callback = h2_body_to_server};
	nghttp2_session *server = h2_machine_server(s->m);
	struct h2_block block;
	int32_t id;

	if (!server) {
		h2_stream_reset(s, MACHINE_CLIENT, NGHTTP2_REFUSED_STREAM);
		return;
	}
	h2_block_init(&block, s->request.n_views + 4);
	h2_block_add(&block, slice_of(":method"), s->turn.method, false);
	h2_block_add(&block, slice_of(":scheme"), s->turn.scheme, false);
	if (s->turn.authority.len)
		h2_block_add(&block, slice_of(":authority"), str_slice(&s->turn.authority), false);
	h2_block_add_path(&block, &s->turn);
	h2_block_add_fields(&block, &s->request, &s->turn);
	id = nghttp2_submit_request(
		server, NULL, h2_block_items(&block), block.n, last ? NULL : &provider, s);
	h2_block_done(&block);
	if (id < 0) {
		h2_stream_reset(s, MACHINE_CLIENT, NGHTTP2_REFUSED_STREAM);
		return;
	}
	s->id[MACHINE_SERVER] = id;
	s->to[MACHINE_SERVER].has_provider = !last;
}

/* Two names for one place would leave it to the server which one it means. */
static struct slice authority(const struct h2_stream *s, bool *ret_differ)
{
	struct slice a = h2_fields_pseudo(&s->request, ":authority");

	*ret_differ = false;
	for (size_t i = 0; i < s->request.n_views; i++) {
		const struct http1_field *f = &s->request.views[i];

		if (!slice_is(f->name, "host"))
			continue;
		if (a.p && (a.len != f->value.len || strncasecmp(a.p, f->value.p, a.len) != 0))
			*ret_differ = true;
		a = f->value;
	}
	return a;
}

static int find_address(struct h2_stream *s, struct http1_fault *fault)
{
	struct slice target = h2_fields_pseudo(&s->request, ":path");
	bool differ;
	struct slice a = authority(s, &differ);

	if (differ || (!a.p && !slice_is(s->turn.method, "CONNECT"))) {
		*fault = (struct http1_fault){400, "the request names no host, or two"};
		return -EBADMSG;
	}
	if (slice_is(s->turn.method, "CONNECT"))
		target = a;
	else if (!target.len)
		target = slice_of("/");
	return http_turn_address(&s->turn, a, target, fault);
}

static bool may_pass(struct h2_stream *s)
{
	struct http1_fault fault;

	if (find_address(s, &fault) < 0) {
		http_turn_refuse(&s->turn, fault.status, HTTP_TURN_UNREADABLE, fault.why);
		return false;
	}
	if (!http_turn_judge(&s->turn))
		return false;
	if (!s->turn.is_connect)
		return true;
	http_turn_refuse(&s->turn, 403, HTTP_TURN_TUNNELS, HTTP_TURN_NO_TUNNEL);
	return false;
}

/* Declared, as nghttp2 has checked it. */
static bool read_length(const struct h2_fields *fields, uint64_t *ret)
{
	for (size_t i = 0; i < fields->n_views; i++)
		if (slice_is(fields->views[i].name, "content-length")) {
			*ret = strtoull(fields->views[i].value.p, NULL, 10);
			return true;
		}
	return false;
}

void h2_stream_request(struct h2_stream *s, bool last)
{
	h2_fields_view(&s->request);
	s->block = &s->spare;
	s->turn.method = h2_fields_pseudo(&s->request, ":method");
	s->turn.fields = s->request.views;
	s->turn.n_fields = s->request.n_views;
	s->turn.has_length = read_length(&s->request, &s->turn.length);
	if (may_pass(s))
		forward_request(s, last);
	else
		answer_refusal(s);
	if (last)
		h2_stream_end(s, MACHINE_CLIENT);
}

static unsigned status_of(const struct h2_fields *fields)
{
	return (unsigned)strtoul(h2_fields_pseudo(fields, ":status").p, NULL, 10);
}

static void add_head(struct h2_block *block, const struct h2_fields *fields)
{
	h2_block_init(block, fields->n_views + 1);
	h2_block_add(block, slice_of(":status"), h2_fields_pseudo(fields, ":status"), false);
	h2_block_add_fields(block, fields, NULL);
}

static void forward_interim(struct h2_stream *s)
{
	struct h2_block block;

	add_head(&block, &s->response);
	(void)nghttp2_submit_headers(s->m->session[MACHINE_CLIENT], NGHTTP2_FLAG_NONE,
		s->id[MACHINE_CLIENT], NULL, h2_block_items(&block), block.n, NULL);
	h2_block_done(&block);
	h2_fields_done(&s->response);
}

void h2_stream_response(struct h2_stream *s, bool last)
{
	struct h2_block block;

	http_turn_put_back(&s->turn, s->response.text.p, s->response.text.len);
	h2_fields_view(&s->response);
	if (s->cut || s->closed[MACHINE_CLIENT])
		return;
	if (status_of(&s->response) < 200) {
		forward_interim(s);
		return;
	}
	s->turn.status = status_of(&s->response);
	s->turn.response_fields = s->response.views;
	s->turn.n_response_fields = s->response.n_views;
	s->turn.response_has_length = read_length(&s->response, &s->turn.response_length);
	add_head(&block, &s->response);
	submit_response(s, &block, last);
	h2_block_done(&block);
	if (last)
		h2_stream_end(s, MACHINE_SERVER);
}

void h2_stream_trailers(struct h2_stream *s, enum machine_side from)
{
	struct h2_half *half = &s->to[machine_other(from)];

	if (s->cut) {
		h2_fields_done(&s->spare);
		return;
	}
	if (from == MACHINE_SERVER)
		http_turn_put_back(&s->turn, s->spare.text.p, s->spare.text.len);
	h2_fields_done(&half->trailers);
	half->trailers = s->spare;
	s->spare = (struct h2_fields){0};
	h2_fields_view(&half->trailers);
	if (from == MACHINE_CLIENT &&
		http_turn_check_fields(&s->turn, half->trailers.views, half->trailers.n_views) < 0)
		break_off(s);
	half->has_trailers = half->trailers.n_views > 0 && half->has_provider;
}

void h2_stream_data(struct h2_stream *s, enum machine_side from, struct slice data)
{
	enum machine_side to = machine_other(from);
	struct h2_half *half = &s->to[to];

	half->owed += data.len;
	if (s->closed[to] || s->cut) {
		h2_body_settle(s, to, data.len);
		if (from == MACHINE_CLIENT && is_answered_early(s))
			throw_away(s, data.len);
		return;
	}
	if (from == MACHINE_SERVER)
		http_turn_receive(&s->turn, data, &s->m->scratch, &data);
	else if (http_turn_send(&s->turn, data, &s->m->scratch, &data) < 0)
		break_off(s);
	if (s->cut)
		return;
	h2_body_add(s, to, data);
}

void h2_stream_end(struct h2_stream *s, enum machine_side from)
{
	struct h2_half *half = &s->to[machine_other(from)];
	struct slice data;

	s->came_whole[from] = true;
	if (half->ended || (s->cut && from == MACHINE_CLIENT))
		return;
	half->ended = true;
	if (from == MACHINE_SERVER)
		http_turn_receive_end(&s->turn, &s->m->scratch, &data);
	else if (http_turn_send_end(&s->turn, &s->m->scratch, &data) < 0)
		break_off(s);
	if (s->cut)
		return;
	h2_body_add(s, machine_other(from), data);
}

void h2_stream_sent_end(struct h2_stream *s, enum machine_side to)
{
	s->to[to].sent_end = true;
}

static const char *describe(enum machine_side side, uint32_t code)
{
	if (code == NGHTTP2_REFUSED_STREAM)
		return side == MACHINE_SERVER ? "the server refused the stream"
		                              : "the client refused the stream";
	return side == MACHINE_SERVER ? "the server reset the stream"
	                              : "the client reset the stream";
}

/* The server is done before the client is: either its answer is whole, and goes out first, or it never will be. */
static void server_closed(struct h2_stream *s, uint32_t code)
{
	if (s->turn.refused)
		return;
	if (s->to[MACHINE_CLIENT].ended && code == NGHTTP2_NO_ERROR) {
		s->cut = !s->came_whole[MACHINE_CLIENT];
		return;
	}
	if (!s->turn.error)
		s->turn.error = describe(MACHINE_SERVER, code);
	h2_stream_reset(s, MACHINE_CLIENT, code ? code : NGHTTP2_INTERNAL_ERROR);
}

void h2_stream_closed(struct h2_stream *s, enum machine_side side, uint32_t code)
{
	enum machine_side other = machine_other(side);

	s->closed[side] = true;
	/* What still waits for it goes nowhere. */
	str_done(&s->to[side].waiting);
	s->to[side].at = 0;
	h2_body_settle(s, side, s->to[side].owed);
	if (side == MACHINE_SERVER && !s->closed[other])
		server_closed(s, code);
	if (side == MACHINE_CLIENT && !s->closed[other] && s->id[other]) {
		if (!s->turn.error && !s->to[MACHINE_CLIENT].sent_end)
			s->turn.error = describe(MACHINE_CLIENT, code);
		h2_stream_reset(s, other, code ? code : NGHTTP2_CANCEL);
	}
	if (s->closed[other] || !s->id[other])
		h2_stream_free(s);
}

void h2_stream_lost(struct h2_stream *s)
{
	if (!s->to[MACHINE_CLIENT].ended && !s->turn.error)
		s->turn.error = s->has_response ? "the server ended inside its answer"
		                                : "the server ended without an answer";
	h2_stream_closed(s, MACHINE_SERVER,
		s->to[MACHINE_CLIENT].ended ? NGHTTP2_NO_ERROR : NGHTTP2_INTERNAL_ERROR);
}
