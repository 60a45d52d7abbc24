/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a stream of requests or responses by proto/http1, in pieces cut wherever a test wants, to a text that
 * tests compare: a line "METHOD target host [body]" a message, then "trailer: value" lines; "!status why" where
 * it was refused, "..." where the stream ends within a message. */
#ifndef TESTS_HTTP1_WALK_H
#define TESTS_HTTP1_WALK_H

#include "proto/http1.h"

/* How the walk goes on behind a piece. */
struct http1_walk {
	bool responses;
	struct slice method; /* that all responses answer */
	struct str *out;
	struct str head, data;
	size_t scanned;
	struct http1_body body;
	bool in_body, refused;
};

static inline void http1_walk_refuse(struct http1_walk *w, const struct http1_fault *fault)
{
	str_printf(w->out, "!%u %s\n", fault->status, fault->why);
	w->refused = true;
}

static inline void http1_walk_end_message(struct http1_walk *w)
{
	struct http1_head trailers;
	struct http1_fault fault;

	str_printf(w->out, "[%.*s]\n", (int)w->data.len, w->data.p ? w->data.p : "");
	if (w->body.framing == HTTP1_CHUNKED) {
		if (http1_body_trailers(&w->body, &trailers, &fault) < 0) {
			http1_walk_refuse(w, &fault);
			return;
		}
		for (size_t i = 0; i < trailers.n_fields; i++)
			http1_add_field(w->out, trailers.fields[i].name, trailers.fields[i].value);
		http1_head_done(&trailers);
	}
	http1_body_done(&w->body);
	w->in_body = false;
	w->scanned = 0;
	str_reset(&w->head);
	str_reset(&w->data);
}

static inline void http1_walk_head(struct http1_walk *w)
{
	struct http1_head head;
	struct http1_fault fault;
	int r = w->responses ? http1_read_response(str_slice(&w->head), w->method, &head, &fault)
	                     : http1_read_request(str_slice(&w->head), &head, &fault);

	if (r < 0) {
		http1_walk_refuse(w, &fault);
		return;
	}
	if (w->responses)
		str_printf(w->out, "%u ", head.status);
	else
		str_printf(w->out, "%.*s %.*s %.*s ", (int)head.method.len, head.method.p,
			(int)head.target.len, head.target.p, (int)head.host.len,
			head.host.p ? head.host.p : "");
	http1_body_init(&w->body, &head);
	w->in_body = true;
	http1_head_done(&head);
	if (w->body.ended)
		http1_walk_end_message(w);
}

static inline size_t http1_walk_step(struct http1_walk *w, struct slice in)
{
	struct slice data;
	struct http1_fault fault;
	size_t before = w->head.len;
	long n;

	if (w->in_body) {
		n = http1_body_read(&w->body, in, &data);
		if (n < 0) {
			http1_walk_refuse(w, &w->body.fault);
			return in.len;
		}
		str_add(&w->data, data.p, data.len);
		if (w->body.ended)
			http1_walk_end_message(w);
		return (size_t)n;
	}
	str_add(&w->head, in.p, in.len);
	n = http1_find_end(str_slice(&w->head), &w->scanned, &fault);
	if (n < 0)
		http1_walk_refuse(w, &fault);
	if (n <= 0)
		return in.len;
	w->head.len = (size_t)n;
	http1_walk_head(w);
	return (size_t)n - before;
}

static inline void http1_walk_feed(struct http1_walk *w, struct slice in)
{
	while (in.len && !w->refused) {
		size_t n = http1_walk_step(w, in);

		in.p += n;
		in.len -= n;
	}
}

/* End of the stream. */
static inline void http1_walk_finish(struct http1_walk *w)
{
	if (!w->refused && w->in_body && http1_body_eof(&w->body) == 0)
		http1_walk_end_message(w);
	else if (!w->refused && (w->in_body || w->head.len))
		str_puts(w->out, "...\n");
	http1_body_done(&w->body);
	str_done(&w->head);
	str_done(&w->data);
}

#endif
