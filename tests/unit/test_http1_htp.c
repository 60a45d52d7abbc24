/* SPDX-License-Identifier: Apache-2.0 */
/* Our reading of requests and answers beside that of libhtp, which reads as servers and browsers do, on inputs made of ambiguous parts:
 * what we accept it must read the same; what the two read differently we must have refused. */
#include <htp/htp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "http1_walk.h"

static struct str theirs; /* what libhtp read, as http1_walk.h writes it */
static struct str their_body;

static void add_bstr(const bstr *text)
{
	if (text)
		str_add(&theirs, bstr_ptr(text), bstr_len(text));
}

static int on_body(htp_tx_data_t *data)
{
	if (data->data)
		str_add(&their_body, data->data, data->len);
	return HTP_OK;
}

static int on_complete(htp_tx_t *tx)
{
	htp_header_t *host = htp_table_get_c(tx->request_headers, "host");

	add_bstr(tx->request_method);
	str_putc(&theirs, ' ');
	add_bstr(tx->request_uri);
	str_putc(&theirs, ' ');
	add_bstr(host ? host->value : NULL);
	str_printf(&theirs, " [%.*s]\n", (int)their_body.len, their_body.p ? their_body.p : "");
	str_reset(&their_body);
	return HTP_OK;
}

static void read_theirs(struct slice in)
{
	htp_cfg_t *cfg = htp_config_create();
	htp_connp_t *connp;

	str_reset(&theirs);
	str_reset(&their_body);
	htp_config_set_server_personality(cfg, HTP_SERVER_GENERIC);
	htp_config_register_request_body_data(cfg, on_body);
	htp_config_register_request_complete(cfg, on_complete);
	connp = htp_connp_create(cfg);
	htp_connp_open(connp, "127.0.0.1", 1, "127.0.0.1", 80, NULL);
	(void)htp_connp_req_data(connp, NULL, in.p, in.len);
	htp_connp_close(connp, NULL);
	htp_connp_destroy_all(connp);
	htp_config_destroy(cfg);
	str_putc(&theirs, '\0');
}

/* All of the input read as whole messages, without a trailer to compare. */
static bool read_ours(struct slice in, bool responses, struct str *out)
{
	struct http1_walk walk = {.out = out, .responses = responses, .method = slice_of("GET")};
	bool whole;

	http1_walk_feed(&walk, in);
	whole = !walk.refused && !walk.in_body && !walk.head.len;
	http1_walk_finish(&walk);
	str_putc(out, '\0');
	return whole;
}

static const char *const starts[] = {"GET / HTTP/1.1\r\n", "POST /a HTTP/1.1\r\n",
	"POST /a HTTP/1.0\r\n", "POST  /a HTTP/1.1\r\n", "POST /a  HTTP/1.1\r\n",
	"POST /a b HTTP/1.1\r\n", "POST\t/a HTTP/1.1\r\n", " POST /a HTTP/1.1\r\n",
	"\r\nPOST /a HTTP/1.1\r\n", "POST /a HTTP/1.1\n", "POST /a HTTP/1.1 \r\n",
	"POST /a HTTP/01.1\r\n", "POST /a\r\n", "POST http://b/a HTTP/1.1\r\n",
	"POST /a#b HTTP/1.1\r\n", "POST /a\x01 HTTP/1.1\r\n", "POST /a HTTP/1.1\r\r\n",
	"PO\0ST /a HTTP/1.1\r\n"};
static const char *const hosts[] = {"Host: a\r\n", "Host:a\r\n", "Host:\ta \r\n", "HOST: a\r\n",
	"Host : a\r\n", "Host: a\n", "Host: a\r\nHost: b\r\n", "Host: a\r\n b\r\n",
	"Host: a\rHost: b\r\n", " Host: a\r\n", "Host: a, b\r\n", ""};
static const char *const framings[] = {"", "Content-Length: 5\r\n", "Content-Length:5 \r\n",
	"Content-Length: +5\r\n", "Content-Length: 05\r\n", "Content-Length: 5, 5\r\n",
	"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
	"Content-Length : 5\r\n", "Content-Length: 5\n", "Content-Length: 0x5\r\n",
	"Content-Length: 5 5\r\n", "Content-Length: 5\r\n\t5\r\n", "Content-Length\r\n: 5\r\n",
	"Content-Length: \r\n", "Transfer-Encoding: chunked\r\n", "transfer-encoding:CHUNKED\r\n",
	"Transfer-Encoding : chunked\r\n", "Transfer-Encoding: xchunked\r\n",
	"Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n",
	"Transfer-Encoding:\x0b"
	"chunked\r\n",
	"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Transfer-Encoding: identity\r\n",
	"Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
	"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
	"Transfer-Encoding:\r\n chunked\r\n", "X: y\r\n\rTransfer-Encoding: chunked\r\n"};
static const char *const bodies[] = {"", "abcde", "abcdef", "5\r\nabcde\r\n0\r\n\r\n",
	"5;x=y\r\nabcde\r\n0\r\n\r\n", "5 \r\nabcde\r\n0\r\n\r\n", "05\r\nabcde\r\n00\r\n\r\n",
	"5\nabcde\n0\n\n", "0x5\r\nabcde\r\n0\r\n\r\n", "+5\r\nabcde\r\n0\r\n\r\n",
	"5\r\nabcde0\r\n\r\n", "5;\nabcde\r\n0\r\n\r\n", "100000005\r\nabcde\r\n0\r\n\r\n",
	"-1\r\nabcde\r\n0\r\n\r\n", "\r\n5\r\nabcde\r\n0\r\n\r\n", "0\r\n\r\n",
	"0\r\nHost: b\r\n\r\n", "0\r\n\r\nabcde"};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* One input; a second request stands behind it, so that a body's end matters. */
static bool compare(size_t start, size_t host, size_t framing, size_t body)
{
	scoped_str struct str in = {0}, ours = {0};

	str_puts(&in, starts[start]);
	str_puts(&in, hosts[host]);
	str_puts(&in, framings[framing]);
	str_puts(&in, "\r\n");
	str_puts(&in, bodies[body]);
	str_puts(&in, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
	if (!read_ours(str_slice(&in), false, &ours))
		return false;
	read_theirs(str_slice(&in));
	if (strcmp(ours.p, theirs.p) != 0)
		fail_msg("accepted, though read in two ways:\n%s\nours:\n%s\ntheirs:\n%s", in.p,
			ours.p, theirs.p);
	return true;
}

static void test_against_libhtp(void **state)
{
	size_t accepted = 0, all = 0;

	for (size_t s = 0; s < COUNT(starts); s++)
		for (size_t h = 0; h < COUNT(hosts); h++)
			for (size_t f = 0; f < COUNT(framings); f++)
				for (size_t b = 0; b < COUNT(bodies); b++, all++)
					accepted += compare(s, h, f, b);
	print_message("%zu of %zu inputs accepted\n", accepted, all);
	/* The plain ones are among them: start lines 0, 1, 2, 13; hosts 0 to 3; lengths and chunked. */
	assert_true(accepted > 100);
	str_done(&theirs);
	str_done(&their_body);
}

static int on_answer(htp_tx_t *tx)
{
	str_printf(&theirs, "%d [%.*s]\n", tx->response_status_number, (int)their_body.len,
		their_body.p ? their_body.p : "");
	str_reset(&their_body);
	return HTP_OK;
}

/* The answers to two requests; one that ends with the connection is followed by nothing. */
static void read_their_answers(struct slice in)
{
	static const char requests[] =
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
	htp_cfg_t *cfg = htp_config_create();
	htp_connp_t *connp;

	str_reset(&theirs);
	str_reset(&their_body);
	htp_config_set_server_personality(cfg, HTP_SERVER_GENERIC);
	htp_config_register_response_body_data(cfg, on_body);
	htp_config_register_response_complete(cfg, on_answer);
	connp = htp_connp_create(cfg);
	htp_connp_open(connp, "127.0.0.1", 1, "127.0.0.1", 80, NULL);
	(void)htp_connp_req_data(connp, NULL, requests, sizeof(requests) - 1);
	(void)htp_connp_res_data(connp, NULL, in.p, in.len);
	htp_connp_close(connp, NULL);
	htp_connp_destroy_all(connp);
	htp_config_destroy(cfg);
	str_putc(&theirs, '\0');
}

static const char *const status_lines[] = {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 200\r\n",
	"HTTP/1.0 200 OK\r\n", "HTTP/1.1  200 OK\r\n", "HTTP/1.1 200 OK\n", "HTTP/1.1 0200 OK\r\n",
	"HTTP/1.1 2x0 OK\r\n", "HTTP/1.1\t200 OK\r\n", "HTTP/2 200 OK\r\n",
	"\r\nHTTP/1.1 200 OK\r\n", "HTTP/1.1 404 Not\rFound\r\n"};
static const char *const answer_ends[] = {"HTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n", ""};

static bool compare_answer(
	const char *status, const char *framing, const char *body, const char *end)
{
	scoped_str struct str in = {0}, ours = {0};

	str_puts(&in, status);
	str_puts(&in, framing);
	str_puts(&in, "\r\n");
	str_puts(&in, body);
	str_puts(&in, end);
	if (!read_ours(str_slice(&in), true, &ours))
		return false;
	read_their_answers(str_slice(&in));
	if (strcmp(ours.p, theirs.p) != 0)
		fail_msg("accepted, though read in two ways:\n%s\nours:\n%s\ntheirs:\n%s", in.p,
			ours.p, theirs.p);
	return true;
}

static void test_answers_against_libhtp(void **state)
{
	size_t accepted = 0, all = 0;

	for (size_t s = 0; s < COUNT(status_lines); s++)
		for (size_t f = 0; f < COUNT(framings); f++)
			for (size_t b = 0; b < COUNT(bodies); b++)
				for (size_t e = 0; e < COUNT(answer_ends); e++, all++)
					accepted += compare_answer(status_lines[s], framings[f],
						bodies[b], answer_ends[e]);
	print_message("%zu of %zu answers accepted\n", accepted, all);
	assert_true(accepted > 30);
	str_done(&theirs);
	str_done(&their_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_libhtp),
		cmocka_unit_test(test_answers_against_libhtp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
