/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of the HTTP/1 machine: a head is read whole, asked about, written anew; its body follows. */
#include <stdlib.h>

#include "gateway/http_parts.h"
#include "util/mem.h"

/* Nothing of it can be trusted, its end least of all. */
static void refuse_unreadable(struct http_machine *m, const struct http1_fault *fault)
{
	http_turn_refuse(&m->pair->turn, fault->status, HTTP_TURN_UNREADABLE, fault->why);
	http_machine_answer_refusal(m, false);
}

/* The client will read the answer before it sends more, or its body is short: else the connection ends. */
static bool keeps_after_refusal(const struct http_pair *pair)
{
	const struct http1_head *r = &pair->request;

	return r->keep_alive && !r->expects_continue && r->framing != HTTP1_CHUNKED &&
	       r->length <= HTTP_DRAIN_MAX;
}

static bool is_websocket(const struct http1_head *request)
{
	return http1_is(request->upgrade, "websocket") && slice_is(request->method, "GET") &&
	       request->framing == HTTP1_NO_BODY && request->minor &&
	       http1_find(request, "sec-websocket-key").p;
}

/* "h2c" is an offer that a server may pass over, and some clients make it with each first request. */
static bool is_passed_over(struct slice upgrade)
{
	return !upgrade.p || http1_is(upgrade, "h2c");
}

static bool may_pass(struct http_pair *pair)
{
	if (!http_turn_judge(&pair->turn))
		return false;
	if (pair->turn.is_connect) {
		http_turn_refuse(&pair->turn, 403, HTTP_TURN_TUNNELS, HTTP_TURN_NO_TUNNEL);
		return false;
	}
	if (!is_passed_over(pair->request.upgrade) && !is_websocket(&pair->request)) {
		http_turn_refuse(&pair->turn, 403, "no other upgrade",
			"The only upgrade of a connection that is passed on is websocket");
		return false;
	}
	return true;
}

static void add_put_field(struct str *out, struct http_pair *pair, const struct http1_field *f)
{
	str_add(out, f->name.p, f->name.len);
	str_puts(out, ": ");
	http_turn_put_field(&pair->turn, f->name, f->value, out);
	str_puts(out, "\r\n");
}

static void add_request_field(struct str *out, struct http_pair *pair, const struct http1_field *f)
{
	const struct http1_head *r = &pair->request;

	if (http1_is(f->name, "host"))
		http1_add_field(out, f->name, str_slice(&pair->turn.authority));
	else if (http1_is(f->name, "content-length"))
		str_printf(out, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	else if (http1_is(f->name, "transfer-encoding"))
		str_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (http1_is(f->name, "te") && http1_has_token(f->value, "trailers"))
		str_puts(out, "TE: trailers\r\n");
	else if (http1_is(f->name, "upgrade") && is_websocket(r))
		http1_add_field(out, f->name, f->value);
	else if (!http_machine_is_hop(f->name))
		add_put_field(out, pair, f);
}

static void forward_head(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	const struct http1_head *r = &pair->request;
	struct str *out = &m->out[MACHINE_SERVER].bytes;

	str_reset(&m->plain);
	http_turn_put_path(&pair->turn, &m->plain);
	http1_add_request(out, r->method, str_slice(&m->plain), r->minor);
	for (size_t i = 0; i < r->n_fields; i++)
		add_request_field(out, pair, &r->fields[i]);
	http_machine_add_connection(
		out, r->minor, r->keep_alive, is_websocket(r) ? "Upgrade" : NULL);
	http1_add_end(out);
	pair->keep = r->keep_alive;
}

static void add_data(struct http_machine *m, struct slice data)
{
	struct str *out = &m->out[MACHINE_SERVER].bytes;

	if (m->pair->request.framing == HTTP1_CHUNKED)
		http1_add_chunk(out, data);
	else
		str_add(out, data.p, data.len);
}

static void add_trailers(struct http_machine *m, const struct http1_head *trailers)
{
	struct str *out = &m->out[MACHINE_SERVER].bytes;

	http1_add_last_chunk(out);
	for (size_t i = 0; i < trailers->n_fields; i++)
		if (!http_machine_is_hop(trailers->fields[i].name))
			add_put_field(out, m->pair, &trailers->fields[i]);
	http1_add_end(out);
}

static void end_request_body(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	struct http1_head trailers;
	struct http1_fault fault;
	struct slice data;

	if (http_turn_send_end(&pair->turn, &m->plain, &data) < 0) {
		http_machine_break_off(m);
		return;
	}
	add_data(m, data);
	if (pair->request.framing != HTTP1_CHUNKED)
		return;
	if (http1_body_trailers(&pair->request_body, &trailers, &fault) < 0) {
		pair->turn.error = fault.why;
		m->closing[MACHINE_SERVER] = true;
		return;
	}
	if (http_turn_check_fields(&pair->turn, trailers.fields, trailers.n_fields) < 0)
		http_machine_break_off(m);
	else
		add_trailers(m, &trailers);
	http1_head_done(&trailers);
}

static void read_head(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	struct http1_fault fault;

	if (http1_read_request(str_slice(&pair->request_text), &pair->request, &fault) < 0) {
		refuse_unreadable(m, &fault);
		return;
	}
	http1_body_init(&pair->request_body, &pair->request);
	pair->turn.method = pair->request.method;
	pair->turn.fields = pair->request.fields;
	pair->turn.n_fields = pair->request.n_fields;
	pair->turn.has_length = pair->request.has_length;
	pair->turn.length = pair->request.length;
	if (http_turn_address(&pair->turn, pair->request.host, pair->request.target, &fault) < 0) {
		refuse_unreadable(m, &fault);
		return;
	}
	if (!may_pass(pair)) {
		http_machine_answer_refusal(m, keeps_after_refusal(pair));
		return;
	}
	forward_head(m);
	if (pair->request_body.ended)
		end_request_body(m);
}

static size_t take_head(struct http_machine *m, struct slice in)
{
	struct http1_fault fault;
	size_t used;
	int r = http_machine_gather(m, MACHINE_CLIENT, in, &used, &fault);

	if (r == 0)
		return used;
	m->pair = new0(struct http_pair);
	http_turn_init(&m->pair->turn, &m->setup, "http/1.1");
	m->pair->request_text = m->head[MACHINE_CLIENT];
	m->head[MACHINE_CLIENT] = (struct str){0};
	m->scanned[MACHINE_CLIENT] = 0;
	if (r < 0)
		refuse_unreadable(m, &fault);
	else
		read_head(m);
	return used;
}

/* False: it was broken off. */
static bool forward_data(struct http_machine *m, struct slice data)
{
	if (m->pair->turn.refused || !data.len)
		return true;
	if (http_turn_send(&m->pair->turn, data, &m->plain, &data) < 0) {
		http_machine_break_off(m);
		return false;
	}
	add_data(m, data);
	return true;
}

/* Its body turned out to be none: the server sees it cut, and the client an end, or 400 where no answer began. */
static void spoil_body(struct http_machine *m)
{
	struct http_pair *pair = m->pair;

	if (!pair->turn.refused)
		http_turn_fail(&pair->turn, 400, pair->request_body.fault.why);
	if (pair->response_ended || pair->has_response)
		http_machine_close(m);
	else
		http_machine_answer_refusal(m, false);
}

size_t http_request_take(struct http_machine *m, struct slice in)
{
	struct http_pair *pair = m->pair;
	struct slice data;
	long n;

	if (!pair)
		return take_head(m, in);
	if (pair->request_body.ended)
		return 0;
	n = http1_body_read(&pair->request_body, in, &data);
	if (n < 0) {
		spoil_body(m);
		return in.len;
	}
	if (forward_data(m, data) && pair->request_body.ended) {
		if (!pair->turn.refused)
			end_request_body(m);
		if (m->pair)
			http_machine_settle(m);
	}
	return (size_t)n;
}

void http_request_cut(struct http_machine *m)
{
	struct http_pair *pair = m->pair;

	if (!pair || pair->turn.refused) {
		http_machine_close(m);
		return;
	}
	if (!pair->request_body.ended && !pair->turn.error)
		pair->turn.error = "the client ended inside its request";
	m->closing[MACHINE_SERVER] = true;
}
