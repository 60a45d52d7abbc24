/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "http1_walk.h"

struct row {
	const char *in, *want;
};

#define R "GET / HTTP/1.1\r\nHost: a\r\n"
#define P "POST /p HTTP/1.1\r\nHost: a\r\n"
#define C P "Transfer-Encoding: chunked\r\n\r\n"

static const struct row requests[] = {
	{R "\r\n", "GET / a []\n"},
	{R "\r\n" R "\r\n", "GET / a []\nGET / a []\n"},
	{"GET /x HTTP/1.0\r\n\r\n", "GET /x  []\n"},
	{"OPTIONS * HTTP/1.1\r\nHost:a\r\n\r\n", "OPTIONS * a []\n"},
	{"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", "CONNECT h:443 h:443 []\n"},
	{"GET http://b/c HTTP/1.1\r\nHost: b\r\n\r\n", "GET http://b/c b []\n"},
	{P "Content-Length: 5\r\n\r\nabcde" R "\r\n", "POST /p a [abcde]\nGET / a []\n"},
	{P "Content-Length: 0\r\n\r\n", "POST /p a []\n"},
	{C "5\r\nabcde\r\n0\r\n\r\n" R "\r\n", "POST /p a [abcde]\nGET / a []\n"},
	{C "3;a=b\r\nabc\r\n02\r\nde\r\n000\r\nX: y\r\n\r\n", "POST /p a [abcde]\nX: y\r\n"},
	{C "A\r\n0123456789\r\n0\r\n\r\n", "POST /p a [0123456789]\n"},
	{P "tRANSFER-eNCODING: CHUNKED\r\n\r\n0\r\n\r\n", "POST /p a []\n"},
	/* cut short */
	{"GET / HT", "...\n"},
	{P "Content-Length: 5\r\n\r\nabc", "POST /p a ...\n"},
	{C "5\r\nabcde\r\n0\r\n", "POST /p a ...\n"},
	/* refused */
	{"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "!400 an empty line stands before the head\n"},
	{"GET / HTTP/1.1\nHost: a\n\n", "!400 a line does not end in CR LF\n"},
	{"GET / HTTP/1.1\r\nHost: a\r\n\n", "!400 a line does not end in CR LF\n"},
	{"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "!400 a line does not end in CR LF\n"},
	{"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "!400 a field's name is not a word\n"},
	{"GET / HTTP/1.1\r\n: a\r\n\r\n", "!400 a field's name is not a word\n"},
	{"GET / HTTP/1.1\r\nHost\r\n\r\n", "!400 a field has no colon\n"},
	{R "X: a\r\n b\r\n\r\n", "!400 a field is folded over lines\n"},
	{"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "!400 a field is folded over lines\n"},
	{R "X: a\x01\r\n\r\n", "!400 the head holds a control character\n"},
	{R "X: a\x7f\r\n\r\n", "!400 the head holds a control character\n"},
	{R "Host: b\r\n\r\n", "!400 Host stands there twice\n"},
	{R "Host: a\r\n\r\n", "!400 Host stands there twice\n"},
	{"GET / HTTP/1.1\r\n\r\n", "!400 Host is missing\n"},
	{"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "!505 the version is not HTTP/1.0 or HTTP/1.1\n"},
	{"GET / HTTP/9.9\r\n\r\n", "!505 the version is not HTTP/1.0 or HTTP/1.1\n"},
	{"GET / http/1.1\r\nHost: a\r\n\r\n", "!400 the first line is not one of HTTP\n"},
	{"GET /\r\n\r\n", "!400 the first line is not one of HTTP\n"},
	{"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the first line is not one of HTTP\n"},
	{"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "!505 the version is not HTTP/1.0 or HTTP/1.1\n"},
	{"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the first line is not one of HTTP\n"},
	{"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the method is not a word of capital letters\n"},
	{"get / HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the method is not a word of capital letters\n"},
	{"GET x HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the request's target is malformed\n"},
	{"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the request's target is malformed\n"},
	{"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the request's target is malformed\n"},
	{"GET ftp://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the request's target is malformed\n"},
	{"GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the request's target is malformed\n"},
	{"CONNECT h HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the request's target is malformed\n"},
	{"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", "!400 the request's target is malformed\n"},
	{P "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"!400 Content-Length stands there twice\n"},
	{P "Content-Length: 5, 5\r\n\r\n", "!400 Content-Length is not a number\n"},
	{P "Content-Length: +5\r\n\r\n", "!400 Content-Length is not a number\n"},
	{P "Content-Length: -1\r\n\r\n", "!400 Content-Length is not a number\n"},
	{P "Content-Length: 0x5\r\n\r\n", "!400 Content-Length is not a number\n"},
	{P "Content-Length:\r\n\r\n", "!400 Content-Length is not a number\n"},
	{P "Content-Length: 99999999999999999999\r\n\r\n", "!400 Content-Length is not a number\n"},
	{P "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"!400 Content-Length stands beside Transfer-Encoding\n"},
	{P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"!400 Transfer-Encoding stands there twice\n"},
	{P "Transfer-Encoding: gzip, chunked\r\n\r\n", "!501 Transfer-Encoding is not chunked\n"},
	{P "Transfer-Encoding: chunked, identity\r\n\r\n",
		"!501 Transfer-Encoding is not chunked\n"},
	{P "Transfer-Encoding: \x0b"
	   "chunked\r\n\r\n",
		"!400 the head holds a control character\n"},
	{P "Transfer-Encoding: \"chunked\"\r\n\r\n", "!501 Transfer-Encoding is not chunked\n"},
	{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"!400 HTTP/1.0 has no Transfer-Encoding\n"},
	{C "\r\n", "POST /p a !400 a chunk's size is not a hexadecimal number\n"},
	{C "5 \r\n", "POST /p a !400 a chunk's size is not a hexadecimal number\n"},
	{C " 5\r\n", "POST /p a !400 a chunk's size is not a hexadecimal number\n"},
	{C "0x5\r\n", "POST /p a !400 a chunk's size is not a hexadecimal number\n"},
	{C "-5\r\n", "POST /p a !400 a chunk's size is not a hexadecimal number\n"},
	{C "5\nabcde\r\n", "POST /p a !400 a chunk's size is not a hexadecimal number\n"},
	{C "fffffffffffffffff\r\n", "POST /p a !400 a chunk's size is too large\n"},
	{C "5;a\x01\r\n", "POST /p a !400 a chunk's extension holds a control character\n"},
	{C "5;a\nabcde\r\n", "POST /p a !400 a chunk's extension holds a control character\n"},
	{C "5\r\nabcdeX\r\n", "POST /p a !400 a chunk does not end in CR LF\n"},
	{C "5\r\nabcde\n0\r\n\r\n", "POST /p a !400 a chunk does not end in CR LF\n"},
	{C "0\r\nX: y\n\r\n", "POST /p a !400 a line of the trailer does not end in CR LF\n"},
	{C "0\r\nHost: b\r\n\r\n",
		"POST /p a []\n!400 a field stands in the trailer that cannot\n"},
	{C "0\r\nContent-Length: 5\r\n\r\n",
		"POST /p a []\n!400 a field stands in the trailer that cannot\n"},
	{R "Upgrade: a\r\nUpgrade: b\r\n\r\n", "!400 Upgrade stands there twice\n"},
	{"\x16\x03\x01", "!400 the head holds a control character\n"},
};

static const struct row responses[] = {
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 [hi]\n"},
	{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 []\n"},
	{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\nHTTP/1.1 304 N\r\nContent-Length: "
	 "9\r\n\r\n",
		"100 []\n204 []\n304 []\n"},
	{"HTTP/1.1 200 OK\r\n\r\nto the end", "200 [to the end]\n"},
	{"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n",
		"200 [abc]\n200 []\n"},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nT: v\r\n\r\n",
		"200 [hi]\nT: v\r\n"},
	{"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n",
		"!502 a response that has no body declares one\n"},
	{"HTTP/1.1 20 OK\r\n\r\n", "!502 the status is not three digits\n"},
	{"HTTP/1.1 2000 OK\r\n\r\n", "!502 the status is not three digits\n"},
	{"HTTP/1.1  200 OK\r\n\r\n", "!502 the status is not three digits\n"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"!502 Content-Length stands there twice\n"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"!502 Content-Length stands beside Transfer-Encoding\n"},
	{"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "!502 a field's name is not a word\n"},
	{"HTTP/2 200\r\n\r\n", "!502 the version is not HTTP/1.0 or HTTP/1.1\n"},
};

/* Three pieces: up to a, up to b, the rest; a == len: byte by byte. */
static void check(const struct row *row, bool is_response, size_t a, size_t b)
{
	scoped_str struct str out = {0};
	struct http1_walk walk = {.responses = is_response, .method = slice_of("GET"), .out = &out};
	size_t len = strlen(row->in), at = 0;

	while (at < len) {
		size_t to = a == len ? at + 1 : at < a ? a : at < b ? b : len;

		http1_walk_feed(&walk, (struct slice){.p = row->in + at, .len = to - at});
		at = to;
	}
	http1_walk_finish(&walk);
	str_putc(&out, '\0');
	assert_string_equal(out.p, row->want);
}

static void check_all_cuts(const struct row *rows, size_t n, bool is_response)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(rows[i].in);

		for (size_t a = 0; a <= len; a++)
			for (size_t b = a; b <= len; b += 3)
				check(&rows[i], is_response, a, b);
	}
}

static void test_requests(void **state)
{
	check_all_cuts(requests, sizeof(requests) / sizeof(requests[0]), false);
}

static void test_responses(void **state)
{
	check_all_cuts(responses, sizeof(responses) / sizeof(responses[0]), true);
}

static void test_head_request(void **state)
{
	static const char in[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
	struct http1_head head;
	struct http1_fault fault;

	assert_int_equal(http1_read_response(slice_of(in), slice_of("HEAD"), &head, &fault), 0);
	assert_int_equal(head.framing, HTTP1_NO_BODY);
	assert_int_equal(head.length, 5);
	assert_true(head.keep_alive);
	http1_head_done(&head);
}

static void test_connection(void **state)
{
	static const struct {
		const char *in;
		bool keep_alive;
		const char *upgrade;
	} cases[] = {
		{R "\r\n", true, NULL},
		{R "Connection: close\r\n\r\n", false, NULL},
		{R "Connection: x, Close\r\n\r\n", false, NULL},
		{"GET / HTTP/1.0\r\n\r\n", false, NULL},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, NULL},
		{R "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n", true,
			"websocket"},
		{R "Upgrade: websocket\r\n\r\n", true, NULL},
		{R "Connection: a\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n", true, "b"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http1_head head;
		struct http1_fault fault;

		assert_int_equal(http1_read_request(slice_of(cases[i].in), &head, &fault), 0);
		assert_int_equal(head.keep_alive, cases[i].keep_alive);
		if (cases[i].upgrade)
			assert_true(slice_is(head.upgrade, cases[i].upgrade));
		else
			assert_null(head.upgrade.p);
		http1_head_done(&head);
	}
}

static void test_hosts(void **state)
{
	static const struct {
		const char *text, *host; /* NULL: refused */
		uint16_t port;
	} cases[] = {
		{"example.org", "example.org", 0},
		{"example.org.:80", "example.org.", 80},
		{"10.0.0.1:8080", "10.0.0.1", 8080},
		{"[::1]", "::1", 0},
		{"[::1]:443", "::1", 443},
		{"a_b-c.d", "a_b-c.d", 0},
		{"", NULL, 0},
		{":80", NULL, 0},
		{"a:", NULL, 0},
		{"a:0", NULL, 0},
		{"a:65536", NULL, 0},
		{"a:80:80", NULL, 0},
		{"a b", NULL, 0},
		{"u@a", NULL, 0},
		{"a%2eb", NULL, 0},
		{"a/b", NULL, 0},
		{"a,b", NULL, 0},
		{".a", NULL, 0},
		{"[::1", NULL, 0},
		{"[::1]x", NULL, 0},
		{"[]", NULL, 0},
		{"::1", NULL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice host;
		uint16_t port;
		int r = http1_split_host(slice_of(cases[i].text), &host, &port);

		assert_int_equal(r == 0, cases[i].host != NULL);
		if (r == 0) {
			assert_true(slice_is(host, cases[i].host));
			assert_int_equal(port, cases[i].port);
		}
	}
}

/* A head one byte over the limit is refused before it is whole; one at it is read. */
static void test_bounds(void **state)
{
	scoped_str struct str head = {0};
	struct http1_fault fault;
	size_t scanned = 0;

	str_puts(&head, R "X: ");
	while (head.len < HTTP1_MAX_HEAD - 4)
		str_putc(&head, 'x');
	str_puts(&head, "\r\n\r\n");
	assert_int_equal(http1_find_end(str_slice(&head), &scanned, &fault), HTTP1_MAX_HEAD);
	str_reset(&head);
	scanned = 0;
	while (head.len <= HTTP1_MAX_HEAD)
		str_putc(&head, 'x');
	assert_true(http1_find_end(str_slice(&head), &scanned, &fault) < 0);
	assert_int_equal(fault.status, 431);
}

static void test_too_many_fields(void **state)
{
	for (size_t n = HTTP1_MAX_FIELDS; n <= HTTP1_MAX_FIELDS + 1; n++) {
		scoped_str struct str head = {0};
		struct http1_head ret;
		struct http1_fault fault;
		int r;

		str_puts(&head, R);
		for (size_t i = 1; i < n; i++)
			str_puts(&head, "X: y\r\n");
		str_puts(&head, "\r\n");
		r = http1_read_request(str_slice(&head), &ret, &fault);
		assert_int_equal(r == 0, n == HTTP1_MAX_FIELDS);
		if (r == 0)
			http1_head_done(&ret);
		else
			assert_int_equal(fault.status, 431);
	}
}

static void test_writing(void **state)
{
	scoped_str struct str out = {0};

	http1_add_request(&out, slice_of("GET"), slice_of("/a"), 1);
	http1_add_field(&out, slice_of("Host"), slice_of("b"));
	http1_add_end(&out);
	http1_add_status(&out, 200, slice_of("OK"), 0);
	http1_add_end(&out);
	http1_add_chunk(&out, slice_of("0123456789abcdef"));
	http1_add_chunk(&out, slice_of(""));
	http1_add_last_chunk(&out);
	http1_add_end(&out);
	assert_string_equal(out.p, "GET /a HTTP/1.1\r\nHost: b\r\n\r\nHTTP/1.0 200 OK\r\n\r\n"
				   "10\r\n0123456789abcdef\r\n0\r\n\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_head_request),
		cmocka_unit_test(test_connection),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_too_many_fields),
		cmocka_unit_test(test_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
