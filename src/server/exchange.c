/* SPDX-License-Identifier: Apache-2.0 */
#include "server/exchange.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/http_internal.h"
#include "server/http_status.h"

void exchange_free(struct exchange *exchange)
{
	if (exchange->bodies)
		exchange->bodies->held -= exchange->held;
	http1_head_done(&exchange->head);
	http1_body_done(&exchange->reader);
	str_done(&exchange->head_bytes);
	str_done(&exchange->body);
	str_done(&exchange->fields);
	free(exchange);
}

/* Whatever an answer holds, a browser keeps it nowhere, takes it for what it says it is, and shows it in nobody's page. */
static const struct {
	const char *name, *value;
} always[] = {
	{"Cache-Control", "no-store"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Content-Security-Policy",
		"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
		"sandbox"},
	{"X-Frame-Options", "DENY"}, /* for browsers that know no frame-ancestors */
	{"Cross-Origin-Resource-Policy", "same-origin"},
};

void exchange_add_start(struct str *out, unsigned status, const char *type, bool is_strict)
{
	http1_add_status(out, status, slice_of(http_status_reason(status)), 1);
	if (type)
		http1_add_field(out, slice_of("Content-Type"), slice_of(type));
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		http1_add_field(out, slice_of(always[i].name), slice_of(always[i].value));
	if (is_strict)
		http1_add_field(
			out, slice_of("Strict-Transport-Security"), slice_of("max-age=31536000"));
}

void exchange_add_length(struct str *out, size_t len)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", len);
	http1_add_field(out, slice_of("Content-Length"), slice_of(text));
}

static struct evbuffer *output_of(const struct exchange *exchange)
{
	return bufferevent_get_output(exchange->conn->bev);
}

const struct http1_head *exchange_head(const struct exchange *exchange)
{
	return &exchange->head;
}

struct slice exchange_body(const struct exchange *exchange)
{
	return str_slice(&exchange->body);
}

const struct http_peer *exchange_peer(const struct exchange *exchange)
{
	return &exchange->peer;
}

bool exchange_has_client(const struct exchange *exchange)
{
	return exchange->conn != NULL;
}

void exchange_on_gone(struct exchange *exchange, void (*on_gone)(void *arg), void *arg)
{
	exchange->on_gone = on_gone;
	exchange->gone_arg = arg;
}

void exchange_read_body(
	struct exchange *exchange, void (*on_body)(void *arg, bool is_there), void *arg)
{
	exchange->on_body = on_body;
	exchange->body_arg = arg;
	if (exchange->conn)
		http_read_body(exchange->conn);
	else
		on_body(arg, false);
}

void exchange_on_drained(struct exchange *exchange, void (*on_drained)(void *arg), void *arg)
{
	exchange->on_drained = on_drained;
	exchange->drained_arg = arg;
}

void exchange_add_fields(struct exchange *exchange, struct slice lines)
{
	str_add(&exchange->fields, lines.p, lines.len);
}

/* Asked for the head only. */
static bool is_head(const struct exchange *exchange)
{
	return slice_is(exchange->head.method, "HEAD");
}

static bool is_events(const char *type)
{
	return type && strcmp(type, "text/event-stream") == 0;
}

static void put(struct exchange *exchange, const struct str *bytes)
{
	evbuffer_add(output_of(exchange), bytes->p, bytes->len);
}

static void add_rest_of_head(struct exchange *exchange, struct str *out)
{
	str_add(out, exchange->fields.p, exchange->fields.len);
	if (exchange->conn->is_last)
		http1_add_field(out, slice_of("Connection"), slice_of("close"));
	http1_add_end(out);
}

/* The exchange is over. */
static void finish(struct exchange *exchange, bool is_whole)
{
	struct http_conn *conn = exchange->conn;

	if (conn)
		conn->exchange = NULL;
	exchange_free(exchange);
	if (conn && is_whole)
		http_conn_answered(conn);
	else if (conn)
		http_conn_drop(conn);
}

void exchange_reply(struct exchange *exchange, unsigned status, const char *type, struct slice body)
{
	scoped_str struct str out = {0};

	if (exchange->conn) {
		exchange_add_start(&out, status, type, exchange->is_strict);
		if (status != 204)
			exchange_add_length(&out, body.len);
		add_rest_of_head(exchange, &out);
		if (!is_head(exchange))
			str_add(&out, body.p, body.len);
		put(exchange, &out);
	}
	finish(exchange, true);
}

void exchange_begin(struct exchange *exchange, unsigned status, const char *type)
{
	scoped_str struct str out = {0};

	exchange->has_begun = true;
	exchange->is_events = is_events(type);
	exchange->is_chunked = exchange->head.minor > 0;
	if (!exchange->conn)
		return;
	exchange->conn->is_last |= !exchange->is_chunked;
	exchange_add_start(&out, status, type, exchange->is_strict);
	if (exchange->is_chunked)
		http1_add_field(&out, slice_of("Transfer-Encoding"), slice_of("chunked"));
	add_rest_of_head(exchange, &out);
	put(exchange, &out);
}

void exchange_write(struct exchange *exchange, struct slice bytes)
{
	scoped_str struct str out = {0};

	if (!exchange->conn || bytes.len == 0 || is_head(exchange))
		return;
	if (exchange->is_chunked)
		http1_add_chunk(&out, bytes);
	else
		str_add(&out, bytes.p, bytes.len);
	put(exchange, &out);
}

size_t exchange_backlog(const struct exchange *exchange)
{
	return exchange->conn ? evbuffer_get_length(output_of(exchange)) : 0;
}

static void put_last(struct exchange *exchange)
{
	scoped_str struct str out = {0};

	if (!exchange->conn || !exchange->is_chunked || is_head(exchange))
		return;
	http1_add_last_chunk(&out);
	http1_add_end(&out);
	put(exchange, &out);
}

static void put_error(struct exchange *exchange, const struct http_refusal *refusal)
{
	scoped_str struct str event = {0};

	str_puts(&event, "event: error\ndata: ");
	http_status_problem(&event, refusal->status, refusal->code, refusal->why, NULL);
	str_puts(&event, "\n\n");
	exchange_write(exchange, str_slice(&event));
	put_last(exchange);
}

void exchange_dismiss(struct exchange *exchange, const struct http_refusal *refusal)
{
	struct http_conn *conn = exchange->conn;

	if (!conn)
		return;
	if (!exchange->has_begun) {
		http_read_refuse(conn, refusal);
	} else if (exchange->is_events) {
		put_error(exchange, refusal);
		http_conn_drop_exchange(conn);
		http_conn_close_when_out(conn);
	} else {
		http_conn_drop(conn);
	}
}

void exchange_end(struct exchange *exchange, bool is_whole)
{
	if (is_whole)
		put_last(exchange);
	finish(exchange, is_whole && exchange->has_begun);
}
