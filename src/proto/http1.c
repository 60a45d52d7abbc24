/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/http1.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "util/mem.h"

#define MAX_METHOD        32
#define MAX_LENGTH_DIGITS 18 /* fits 63 bits with room for sums */

static int refuse(struct http1_fault *fault, unsigned status, const char *why)
{
	*fault = (struct http1_fault){.status = status, .why = why};
	return -EBADMSG;
}

static bool is_tchar(unsigned char c)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr(others, c));
}

bool http1_is_token(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_tchar((unsigned char)text.p[i]))
			return false;
	return text.len > 0;
}

bool http1_is(struct slice text, const char *word)
{
	return text.len == strlen(word) && strncasecmp(text.p, word, text.len) == 0;
}

static struct slice trim(struct slice text)
{
	while (text.len && (*text.p == ' ' || *text.p == '\t')) {
		text.p++;
		text.len--;
	}
	while (text.len && (text.p[text.len - 1] == ' ' || text.p[text.len - 1] == '\t'))
		text.len--;
	return text;
}

bool http1_next_element(struct slice *rest, struct slice *ret_element)
{
	while (rest->len) {
		const char *comma = memchr(rest->p, ',', rest->len);
		size_t n = comma ? (size_t)(comma - rest->p) : rest->len;
		size_t used = comma ? n + 1 : n;

		*ret_element = trim((struct slice){.p = rest->p, .len = n});
		rest->p += used;
		rest->len -= used;
		if (ret_element->len)
			return true;
	}
	return false;
}

bool http1_has_token(struct slice list, const char *token)
{
	struct slice element;

	while (http1_next_element(&list, &element))
		if (http1_is(element, token))
			return true;
	return false;
}

long http1_find_end(struct slice in, size_t *scanned, struct http1_fault *ret_fault)
{
	size_t i = *scanned;

	for (; i < in.len; i++) {
		unsigned char c = (unsigned char)in.p[i];
		bool after_cr = i && in.p[i - 1] == '\r';

		if (i >= HTTP1_MAX_HEAD) {
			(void)refuse(ret_fault, 431, "the head is longer than 64 KiB");
			return -EMSGSIZE;
		}
		if ((c == '\n') != after_cr)
			return refuse(ret_fault, 400, "a line does not end in CR LF");
		if (c == '\n' && i == 1)
			return refuse(ret_fault, 400, "an empty line stands before the head");
		if (c == '\n' && i >= 3 && in.p[i - 2] == '\n') {
			*scanned = i;
			return (long)i + 1;
		}
		if ((c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
			return refuse(ret_fault, 400, "the head holds a control character");
	}
	*scanned = i;
	return 0;
}

/* Takes the next line, without its CR LF. The text ends in CR LF, as http1_find_end() saw. */
static struct slice next_line(struct slice *rest)
{
	const char *lf = memchr(rest->p, '\n', rest->len);
	struct slice line = {.p = rest->p, .len = lf ? (size_t)(lf - rest->p) : rest->len};

	rest->p += lf ? line.len + 1 : line.len;
	rest->len -= lf ? line.len + 1 : line.len;
	if (line.len && line.p[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* Up to the next space, which is taken too; all of it where there is none. */
static struct slice next_word(struct slice *rest)
{
	const char *space = memchr(rest->p, ' ', rest->len);
	struct slice word = {.p = rest->p, .len = space ? (size_t)(space - rest->p) : rest->len};

	rest->p += space ? word.len + 1 : word.len;
	rest->len -= space ? word.len + 1 : word.len;
	return word;
}

static int read_version(struct slice text, unsigned *ret_minor, struct http1_fault *fault)
{
	if (!slice_is(text, "HTTP/1.1") && !slice_is(text, "HTTP/1.0"))
		return slice_starts(text, "HTTP/")
		               ? refuse(fault, 505, "the version is not HTTP/1.0 or HTTP/1.1")
		               : refuse(fault, 400, "the first line is not one of HTTP");
	*ret_minor = text.p[7] == '1';
	return 0;
}

/* Methods are case-sensitive, and all that are registered are written so; servers that meet others guess. */
static bool is_method(struct slice method)
{
	for (size_t i = 0; i < method.len; i++)
		if ((method.p[i] < 'A' || method.p[i] > 'Z') && method.p[i] != '-')
			return false;
	return method.len > 0 && method.len <= MAX_METHOD;
}

/* Tabs and '#' cannot stand in a target; control characters were refused with the head. */
static bool is_target_text(struct slice target)
{
	return target.len && !memchr(target.p, '\t', target.len) &&
	       !memchr(target.p, '#', target.len);
}

static bool is_target(struct slice method, struct slice target)
{
	struct slice scheme, host, rest;
	uint16_t port;

	if (!is_target_text(target))
		return false;
	if (slice_is(method, "CONNECT"))
		return http1_split_host(target, &host, &port) == 0 && port;
	if (slice_is(target, "*"))
		return slice_is(method, "OPTIONS");
	if (*target.p == '/')
		return true;
	return http1_split_absolute(target, &scheme, &host, &rest) == 0;
}

static int read_request_line(struct slice line, struct http1_head *head, struct http1_fault *fault)
{
	int r;

	head->method = next_word(&line);
	head->target = next_word(&line);
	r = read_version(line, &head->minor, fault);
	if (r < 0)
		return r;
	if (!is_method(head->method))
		return refuse(fault, 400, "the method is not a word of capital letters");
	if (!is_target(head->method, head->target))
		return refuse(fault, 400, "the request's target is malformed");
	return 0;
}

static int read_status_line(struct slice line, struct http1_head *head, struct http1_fault *fault)
{
	struct slice version = next_word(&line), code = next_word(&line);
	int r = read_version(version, &head->minor, fault);

	if (r < 0)
		return r;
	for (size_t i = 0; i < code.len; i++) {
		if (code.p[i] < '0' || code.p[i] > '9' || code.len != 3)
			return refuse(fault, 502, "the status is not three digits");
		head->status = head->status * 10 + (unsigned)(code.p[i] - '0');
	}
	if (head->status < 100)
		return refuse(fault, 502, "the status is not three digits");
	head->reason = line;
	return 0;
}

static int read_field(struct slice line, struct http1_field *ret, struct http1_fault *fault)
{
	const char *colon = memchr(line.p, ':', line.len);

	if (*line.p == ' ' || *line.p == '\t')
		return refuse(fault, 400, "a field is folded over lines");
	if (!colon)
		return refuse(fault, 400, "a field has no colon");
	ret->name = (struct slice){.p = line.p, .len = (size_t)(colon - line.p)};
	ret->value = trim((struct slice){.p = colon + 1, .len = line.len - ret->name.len - 1});
	if (!http1_is_token(ret->name))
		return refuse(fault, 400, "a field's name is not a word");
	return 0;
}

static size_t count_lines(struct slice text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.p[i] == '\n';
	return n;
}

/* Lines up to the empty one. */
static int read_fields(struct slice rest, struct http1_head *head, struct http1_fault *fault)
{
	size_t n = count_lines(rest);

	if (n > HTTP1_MAX_FIELDS + 1)
		return refuse(fault, 431, "there are more than 256 fields");
	head->fields = new0_n(struct http1_field, n ? n : 1);
	while (rest.len) {
		struct slice line = next_line(&rest);
		int r;

		if (!line.len)
			break;
		r = read_field(line, &head->fields[head->n_fields], fault);
		if (r < 0)
			return r;
		head->n_fields++;
	}
	return 0;
}

struct slice http1_find(const struct http1_head *head, const char *name)
{
	for (size_t i = 0; i < head->n_fields; i++)
		if (http1_is(head->fields[i].name, name))
			return head->fields[i].value;
	return (struct slice){0};
}

/* The one field of this name; p is NULL where there is none. */
static int find_single(const struct http1_head *head, const char *name, struct slice *ret)
{
	size_t n = 0;

	*ret = (struct slice){0};
	for (size_t i = 0; i < head->n_fields; i++)
		if (http1_is(head->fields[i].name, name)) {
			*ret = head->fields[i].value;
			n++;
		}
	return n > 1 ? -EBADMSG : 0;
}

static int read_length(struct slice text, uint64_t *ret)
{
	uint64_t v = 0;

	if (!text.len || text.len > MAX_LENGTH_DIGITS)
		return -EBADMSG;
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -EBADMSG;
		v = v * 10 + (uint64_t)(text.p[i] - '0');
	}
	*ret = v;
	return 0;
}

static int read_framing(struct http1_head *head, struct http1_fault *fault)
{
	struct slice length, coding;

	if (find_single(head, "content-length", &length) < 0)
		return refuse(fault, 400, "Content-Length stands there twice");
	if (find_single(head, "transfer-encoding", &coding) < 0)
		return refuse(fault, 400, "Transfer-Encoding stands there twice");
	if (length.p && read_length(length, &head->length) < 0)
		return refuse(fault, 400, "Content-Length is not a number");
	head->has_length = length.p != NULL;
	if (coding.p && length.p)
		return refuse(fault, 400, "Content-Length stands beside Transfer-Encoding");
	if (coding.p && head->minor == 0)
		return refuse(fault, 400, "HTTP/1.0 has no Transfer-Encoding");
	if (coding.p && !http1_is(coding, "chunked"))
		return refuse(fault, 501, "Transfer-Encoding is not chunked");
	if (coding.p)
		head->framing = HTTP1_CHUNKED;
	else if (length.p)
		head->framing = HTTP1_LENGTH;
	return 0;
}

/* A list of words over all fields of this name. */
static bool any_has_token(const struct http1_head *head, const char *name, const char *token)
{
	for (size_t i = 0; i < head->n_fields; i++)
		if (http1_is(head->fields[i].name, name) &&
			http1_has_token(head->fields[i].value, token))
			return true;
	return false;
}

static int read_connection(struct http1_head *head, struct http1_fault *fault)
{
	struct slice upgrade;

	head->keep_alive = head->minor ? !any_has_token(head, "connection", "close")
	                               : any_has_token(head, "connection", "keep-alive") &&
	                                         !any_has_token(head, "connection", "close");
	if (find_single(head, "upgrade", &upgrade) < 0)
		return refuse(fault, 400, "Upgrade stands there twice");
	if (upgrade.p && any_has_token(head, "connection", "upgrade"))
		head->upgrade = upgrade;
	return 0;
}

int http1_read_request(struct slice in, struct http1_head *ret_head, struct http1_fault *ret_fault)
{
	struct http1_head head = {0};
	struct slice expect;
	int r = read_request_line(next_line(&in), &head, ret_fault);

	if (r == 0)
		r = read_fields(in, &head, ret_fault);
	if (r == 0)
		r = read_framing(&head, ret_fault);
	if (r == 0)
		r = read_connection(&head, ret_fault);
	if (r == 0 && find_single(&head, "host", &head.host) < 0)
		r = refuse(ret_fault, 400, "Host stands there twice");
	if (r == 0 && !head.host.p && head.minor)
		r = refuse(ret_fault, 400, "Host is missing");
	if (r < 0) {
		http1_head_done(&head);
		return r;
	}
	expect = http1_find(&head, "expect");
	head.expects_continue = head.minor && expect.p && http1_is(expect, "100-continue");
	*ret_head = head;
	return 0;
}

/* What a response's status and the method say of its body (RFC 9112, 6.3). */
static int frame_response(struct http1_head *head, struct slice method, struct http1_fault *fault)
{
	bool never = head->status < 200 || head->status == 204;

	if (never && (head->framing == HTTP1_CHUNKED || head->length))
		return refuse(fault, 502, "a response that has no body declares one");
	if (never || head->status == 304 || slice_is(method, "HEAD"))
		head->framing = HTTP1_NO_BODY;
	else if (head->framing == HTTP1_NO_BODY)
		head->framing = HTTP1_UNTIL_CLOSE;
	if (head->framing == HTTP1_UNTIL_CLOSE)
		head->keep_alive = false;
	return 0;
}

int http1_read_response(struct slice in, struct slice method, struct http1_head *ret_head,
	struct http1_fault *ret_fault)
{
	struct http1_head head = {0};
	int r = read_status_line(next_line(&in), &head, ret_fault);

	if (r == 0)
		r = read_fields(in, &head, ret_fault);
	if (r == 0)
		r = read_framing(&head, ret_fault);
	if (r == 0)
		r = read_connection(&head, ret_fault);
	if (r == 0)
		r = frame_response(&head, method, ret_fault);
	if (r < 0) {
		http1_head_done(&head);
		ret_fault->status = 502;
		return r;
	}
	*ret_head = head;
	return 0;
}

void http1_head_done(struct http1_head *head)
{
	free(head->fields);
	*head = (struct http1_head){0};
}

int http1_body_trailers(
	const struct http1_body *body, struct http1_head *ret_head, struct http1_fault *ret_fault)
{
	static const char *const never[] = {"content-length", "transfer-encoding", "host",
		"trailer", "connection", "upgrade", "content-encoding", "authorization",
		"proxy-authorization"};
	struct http1_head head = {0};
	int r = read_fields(str_slice(&body->trailer), &head, ret_fault);

	for (size_t i = 0; r == 0 && i < sizeof(never) / sizeof(never[0]); i++)
		if (http1_find(&head, never[i]).p)
			r = refuse(ret_fault, 400, "a field stands in the trailer that cannot");
	if (r < 0) {
		http1_head_done(&head);
		return r;
	}
	*ret_head = head;
	return 0;
}
