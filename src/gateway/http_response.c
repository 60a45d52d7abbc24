/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of the HTTP/1 machine. */
#include <errno.h>

#include "gateway/http_parts.h"

/* The client gets a document where it has nothing of the answer yet, else an early end. */
static void refuse_response(struct http_machine *m, const char *why)
{
	struct http_pair *pair = m->pair;

	http_turn_fail(&pair->turn, 502, why);
	if (pair->has_response)
		http_machine_close(m);
	else
		http_machine_answer_refusal(m, false);
}

static void add_response_field(
	struct str *out, const struct http_pair *pair, const struct http1_field *f)
{
	const struct http1_head *r = &pair->response;

	if (http1_is(f->name, "content-length"))
		str_printf(out, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	else if (http1_is(f->name, "transfer-encoding"))
		str_puts(out, "Transfer-Encoding: chunked\r\n");
	else if ((http1_is(f->name, "upgrade") && r->status == 101) ||
		 http1_is(f->name, "keep-alive"))
		http1_add_field(out, f->name, f->value);
	else if (!http_machine_is_hop(f->name))
		http1_add_field(out, f->name, f->value);
}

static void forward_head(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	const struct http1_head *r = &pair->response;
	struct str *out = &m->out[MACHINE_CLIENT].bytes;
	bool interim = r->status < 200;

	http1_add_status(out, r->status, r->reason, r->minor);
	for (size_t i = 0; i < r->n_fields; i++)
		add_response_field(out, pair, &r->fields[i]);
	if (r->status == 101)
		http_machine_add_connection(out, 1, true, "Upgrade");
	else if (
		!interim) /* by the older of the two: a 1.0 client keeps open only what it is told to */
		http_machine_add_connection(
			out, pair->request.minor ? r->minor : 0, pair->keep, NULL);
	http1_add_end(out);
}

static void add_data(struct http_machine *m, struct slice data)
{
	struct str *out = &m->out[MACHINE_CLIENT].bytes;

	if (m->pair->response_body.framing == HTTP1_CHUNKED)
		http1_add_chunk(out, data);
	else
		str_add(out, data.p, data.len);
}

static int add_trailers(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	struct str *out = &m->out[MACHINE_CLIENT].bytes;
	struct http1_head trailers;
	struct http1_fault fault;

	http_turn_put_back(
		&pair->turn, pair->response_body.trailer.p, pair->response_body.trailer.len);
	if (http1_body_trailers(&pair->response_body, &trailers, &fault) < 0) {
		refuse_response(m, fault.why);
		return -EBADMSG;
	}
	http1_add_last_chunk(out);
	for (size_t i = 0; i < trailers.n_fields; i++)
		if (!http_machine_is_hop(trailers.fields[i].name))
			http1_add_field(out, trailers.fields[i].name, trailers.fields[i].value);
	http1_add_end(out);
	http1_head_done(&trailers);
	return 0;
}

static void end_response_body(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	struct slice data;

	http_turn_receive_end(&pair->turn, &m->plain, &data);
	add_data(m, data);
	if (pair->response_body.framing == HTTP1_CHUNKED && add_trailers(m) < 0)
		return;
	pair->response_ended = true;
	http_machine_settle(m);
}

static bool is_good_upgrade(const struct http_pair *pair)
{
	return pair->request.upgrade.p && http1_is(pair->request.upgrade, "websocket") &&
	       http1_is(pair->response.upgrade, "websocket") && pair->request_body.ended;
}

static void begin_final(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	const struct http1_head *r = &pair->response;

	pair->keep = pair->keep && r->keep_alive && !m->ended[MACHINE_CLIENT];
	pair->turn.status = r->status;
	pair->turn.response_fields = r->fields;
	pair->turn.n_response_fields = r->n_fields;
	pair->turn.response_has_length = r->has_length;
	pair->turn.response_length = r->length;
	http1_body_init(&pair->response_body, r);
	forward_head(m);
	pair->has_response = true;
	if (r->status == 101)
		http_upgrade_begin(m);
	else if (pair->response_body.ended)
		end_response_body(m);
}

static void read_head(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	struct http1_fault fault;

	if (http1_read_response(str_slice(&pair->response_text), pair->request.method,
		    &pair->response, &fault) < 0) {
		refuse_response(m, fault.why);
		return;
	}
	if (pair->response.status == 101 && !is_good_upgrade(pair)) {
		refuse_response(m, "the server changed to a protocol that it was not asked for");
		return;
	}
	if (pair->response.status >= 200 || pair->response.status == 101) {
		begin_final(m);
		return;
	}
	/* 100 gives leave to send the body, which only the server can; HTTP/1.0 knows no such answers. */
	if (pair->request.minor)
		forward_head(m);
	http1_head_done(&pair->response);
}

static size_t take_head(struct http_machine *m, struct slice in)
{
	struct http_pair *pair = m->pair;
	struct http1_fault fault;
	size_t used;
	int r = http_machine_gather(m, MACHINE_SERVER, in, &used, &fault);

	if (r < 0) {
		refuse_response(m, fault.why);
		return in.len;
	}
	if (r == 0)
		return used;
	str_done(&pair->response_text);
	pair->response_text = m->head[MACHINE_SERVER];
	m->head[MACHINE_SERVER] = (struct str){0};
	http_turn_put_back(&pair->turn, pair->response_text.p, pair->response_text.len);
	read_head(m);
	return used;
}

static void forward_data(struct http_machine *m, struct slice data)
{
	http_turn_receive(&m->pair->turn, data, &m->plain, &data);
	add_data(m, data);
}

size_t http_response_take(struct http_machine *m, struct slice in)
{
	struct http_pair *pair = m->pair;
	struct slice data;
	long n;

	/* An answer to nothing would be taken for that to the next request. */
	if (!pair || pair->turn.refused) {
		http_machine_close(m);
		return in.len;
	}
	if (!pair->has_response)
		return take_head(m, in);
	if (pair->response_ended)
		return 0;
	n = http1_body_read(&pair->response_body, in, &data);
	if (n < 0) {
		refuse_response(m, pair->response_body.fault.why);
		return in.len;
	}
	forward_data(m, data);
	if (pair->response_body.ended)
		end_response_body(m);
	return (size_t)n;
}

void http_response_cut(struct http_machine *m)
{
	struct http_pair *pair = m->pair;

	if (pair && !pair->turn.refused && !pair->response_ended) {
		if (pair->has_response && http1_body_eof(&pair->response_body) == 0) {
			end_response_body(m);
			return;
		}
		if (!pair->turn.error)
			pair->turn.error = pair->has_response
			                           ? "the server ended inside its answer"
			                           : "the server ended without an answer";
	}
	/* A client that was refused still has its body to send before it reads why. */
	if (!pair || !pair->turn.refused)
		http_machine_close(m);
}
