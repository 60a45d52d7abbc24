/* SPDX-License-Identifier: Apache-2.0 */
#include "report/har_parts.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <strings.h>

#include "util/clock.h"
#include "util/jsonw.h"
#include "view/saturate.h"

static json_t *read_headers(struct slice raw)
{
	json_t *root = raw.len ? json_loadb(raw.p, raw.len, JSON_ALLOW_NUL, NULL) : NULL;

	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

static struct slice header(const json_t *headers, const char *name)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)headers, key, value)
	{
		if (strcasecmp(key, name) == 0)
			return (struct slice){
				.p = json_string_value(value), .len = json_string_length(value)};
	}
	return slice_of("");
}

static void write_pair(struct jsonw *j, struct slice name, struct slice value)
{
	jsonw_object(j);
	jsonw_key(j, "name");
	jsonw_slice(j, name);
	jsonw_key(j, "value");
	jsonw_slice(j, value);
	jsonw_object_end(j);
}

static void write_headers(struct jsonw *j, const json_t *headers)
{
	const char *name;
	json_t *value;

	jsonw_key(j, "headers");
	jsonw_array(j);
	json_object_foreach((json_t *)headers, name, value)
	{
		write_pair(j, slice_of(name),
			(struct slice){
				.p = json_string_value(value), .len = json_string_length(value)});
	}
	jsonw_array_end(j);
}

static void write_empty(struct jsonw *j, const char *key)
{
	jsonw_key(j, key);
	jsonw_array(j);
	jsonw_array_end(j);
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* %41 and + undone; what is no escape stays. */
static void unescape(struct str *out, struct slice text)
{
	str_reset(out);
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] == '%' && i + 2 < text.len &&
			isxdigit((unsigned char)text.p[i + 1]) &&
			isxdigit((unsigned char)text.p[i + 2])) {
			str_putc(out, (char)(digit(text.p[i + 1]) * 16 + digit(text.p[i + 2])));
			i += 2;
		} else {
			str_putc(out, text.p[i] == '+' ? ' ' : text.p[i]);
		}
	}
}

static void write_query_part(struct jsonw *j, struct slice part)
{
	const char *equals = memchr(part.p, '=', part.len);
	size_t n = equals ? (size_t)(equals - part.p) : part.len;
	scoped_str struct str name = {0}, value = {0};

	unescape(&name, (struct slice){.p = part.p, .len = n});
	if (equals)
		unescape(&value, (struct slice){.p = equals + 1, .len = part.len - n - 1});
	write_pair(j, str_slice(&name), str_slice(&value));
}

static void write_query(struct jsonw *j, struct slice url)
{
	const char *mark = url.len ? memchr(url.p, '?', url.len) : NULL;
	struct slice rest = {0};

	if (mark)
		rest = (struct slice){.p = mark + 1, .len = url.len - (size_t)(mark + 1 - url.p)};
	jsonw_key(j, "queryString");
	jsonw_array(j);
	while (rest.len) {
		const char *end = memchr(rest.p, '&', rest.len);
		size_t n = end ? (size_t)(end - rest.p) : rest.len;

		if (n)
			write_query_part(j, (struct slice){.p = rest.p, .len = n});
		n += end != NULL;
		rest = (struct slice){.p = rest.p + n, .len = rest.len - n};
	}
	jsonw_array_end(j);
}

/* A body, how it is encoded where it is not just text, and what is missing. */
static void write_text(
	struct jsonw *j, const char *key, const char *encoding_key, const struct network_body *body)
{
	if (body->has_text)
		jsonw_kslice(j, key, body->text);
	if (slice_is(body->encoding, "base64") && (body->has_text || body->has_tail))
		jsonw_ktext(j, encoding_key, "base64");
	if (body->has_tail)
		jsonw_kslice(j, "_tail", body->tail);
	if (body->truncated)
		jsonw_kbool(j, "_truncated", true);
	if (body->gone)
		jsonw_kbool(j, "_gone", true);
	if (body->changed)
		jsonw_kbool(j, "_changed", true);
}

static const char *version_of(const struct event *ev)
{
	return slice_is(ev->protocol, "h2") ? "HTTP/2.0" : "HTTP/1.1";
}

/* That were sent; of older records what was declared. */
static int64_t request_size(const struct event *ev)
{
	return event_has(ev, request_bytes) ? ev->request_bytes : ev->body_bytes;
}

static void write_request(struct jsonw *j, const struct event *ev, const struct network_body *body)
{
	json_t *headers = read_headers(ev->headers);

	jsonw_key(j, "request");
	jsonw_object(j);
	jsonw_key(j, "method");
	jsonw_slice(j, ev->method);
	jsonw_key(j, "url");
	jsonw_slice(j, ev->url);
	jsonw_ktext(j, "httpVersion", version_of(ev));
	write_empty(j, "cookies");
	write_headers(j, headers);
	write_query(j, ev->url);
	if (network_body_is_told(ev, NETWORK_BODY_SENT)) {
		jsonw_key(j, "postData");
		jsonw_object(j);
		jsonw_key(j, "mimeType");
		jsonw_slice(j, header(headers, "content-type"));
		write_empty(j, "params");
		write_text(j, "text", "_encoding", body);
		jsonw_object_end(j);
	}
	jsonw_kint(j, "headersSize", -1);
	jsonw_kint(j, "bodySize", request_size(ev));
	jsonw_object_end(j);
	json_decref(headers);
}

static void write_response(struct jsonw *j, const struct event *ev, const struct network_body *body)
{
	json_t *headers = read_headers(ev->response_headers);

	jsonw_key(j, "response");
	jsonw_object(j);
	jsonw_kint(j, "status", ev->status);
	jsonw_ktext(j, "statusText", "");
	jsonw_ktext(j, "httpVersion", version_of(ev));
	write_empty(j, "cookies");
	write_headers(j, headers);
	jsonw_key(j, "content");
	jsonw_object(j);
	jsonw_kint(j, "size", event_has(ev, response_bytes) ? ev->response_bytes : 0);
	jsonw_key(j, "mimeType");
	jsonw_slice(j, header(headers, "content-type"));
	write_text(j, "text", "encoding", body);
	jsonw_object_end(j);
	jsonw_key(j, "redirectURL");
	jsonw_slice(j, header(headers, "location"));
	jsonw_kint(j, "headersSize", -1);
	jsonw_kint(j, "bodySize", event_has(ev, response_bytes) ? ev->response_bytes : -1);
	jsonw_object_end(j);
	json_decref(headers);
}

/* Only the whole is measured: it stands as the waiting. */
static void write_times(struct jsonw *j, const struct event *ev)
{
	double ms = (double)ev->duration_ns / (double)CLOCK_NS_PER_MS;

	jsonw_key(j, "cache");
	jsonw_object(j);
	jsonw_object_end(j);
	jsonw_key(j, "timings");
	jsonw_object(j);
	jsonw_kint(j, "send", 0);
	jsonw_key(j, "wait");
	jsonw_real(j, ms);
	jsonw_kint(j, "receive", 0);
	jsonw_object_end(j);
}

static void write_ours(struct jsonw *j, const struct event *ev, const char *sandbox)
{
	if (ev->address.len) {
		jsonw_key(j, "serverIPAddress");
		jsonw_slice(j, ev->address);
	}
	if (event_has(ev, flow)) {
		char text[24];

		snprintf(text, sizeof(text), "%lld", (long long)ev->flow);
		jsonw_ktext(j, "connection", text);
	}
	if (ev->error.len)
		jsonw_key(j, "comment");
	if (ev->error.len)
		jsonw_slice(j, ev->error);
	if (sandbox)
		jsonw_ktext(j, "_sandbox", sandbox);
	jsonw_kint(j, "_seq", (int64_t)ev->seq);
	if (ev->exec.len)
		jsonw_kslice(j, "_exec", ev->exec);
	if (ev->pid)
		jsonw_kint(j, "_pid", ev->pid);
	if (event_has(ev, upgrade))
		jsonw_ktext(j, "_resourceType", "websocket");
	if (ev->secrets.n)
		jsonw_klist(j, "_secrets", ev->secrets.items, ev->secrets.n);
	if (ev->stand_ins.n)
		jsonw_klist(j, "_stand_ins", ev->stand_ins.items, ev->stand_ins.n);
}

int64_t har_parts_start_ms(const struct event *ev)
{
	return saturate_add(ev->wall_ms, -(ev->duration_ns / CLOCK_NS_PER_MS));
}

void har_parts_entry(struct str *out, const struct event *ev, const struct network_bodies *bodies,
	const char *sandbox)
{
	struct jsonw j = jsonw_to(out);
	char text[CLOCK_TEXT_LEN];

	clock_format(har_parts_start_ms(ev), text);
	jsonw_object(&j);
	jsonw_ktext(&j, "startedDateTime", text);
	jsonw_key(&j, "time");
	jsonw_real(&j, (double)ev->duration_ns / (double)CLOCK_NS_PER_MS);
	write_request(&j, ev, &bodies->sides[NETWORK_BODY_SENT]);
	write_response(&j, ev, &bodies->sides[NETWORK_BODY_GOT]);
	write_times(&j, ev);
	write_ours(&j, ev, sandbox);
}

void har_parts_message(struct str *out, const struct event *ev, const struct network_bodies *bodies)
{
	const struct network_body *body = &bodies->sides[NETWORK_BODY_SENT];
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "type", slice_is(ev->direction, "out") ? "send" : "receive");
	jsonw_key(&j, "time");
	jsonw_real(&j, (double)ev->wall_ms / 1000);
	jsonw_kint(&j, "opcode", ev->opcode);
	if (!body->has_text)
		jsonw_ktext(&j, "data", "");
	write_text(&j, "data", "_encoding", body);
	jsonw_object_end(&j);
}
