/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gateway/http_parts.h"
#include "http_drive.h"

/* A step of a script: "c..." the client sends, "s..." the server, "C" and "S" they end. */
struct row {
	const char *steps[8];
	const char *to_server, *to_client; /* NULL: not looked at */
	const char *log;
	const char *ends; /* which sides are shut down at the end: "", "c", "s", "cs" */
};

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a.test\r\n\r\n"
#define OK(body)  "HTTP/1.1 200 OK\r\nContent-Length: " body
#define J(path)   "judge GET http://a.test" path " host=a.test port=0 path=" path "\n"

static const struct row rows[] = {
	/* plain, kept */
	{{"c" GET("/1"), "s" OK("2\r\n\r\nhi"), "c" GET("/2"), "s" OK("0\r\n\r\n")},
		GET("/1") GET("/2"), OK("2\r\n\r\nhi") OK("0\r\n\r\n"),
		J("/1") "http/1.1 GET http://a.test/1 body=0: -> 200 len=2 body=2\n" J(
			"/2") "http/1.1 GET http://a.test/2 body=0: -> 200 len=0\n",
		""},
	/* three requests in one packet: the second goes on when the first is answered */
	{{"cPOST /1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nabcde" GET("/2") GET("/3"),
		 "s" OK("1\r\n\r\n1"), "s" OK("1\r\n\r\n2"), "s" OK("1\r\n\r\n3")},
		"POST /1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nabcde" GET("/2")
			GET("/3"),
		OK("1\r\n\r\n1") OK("1\r\n\r\n2") OK("1\r\n\r\n3"),
		"judge POST http://a.test/1 host=a.test port=0 path=/1\n"
		"http/1.1 POST http://a.test/1 len=5 body=5:abcde -> 200 len=1 body=1\n" J(
			"/2") "http/1.1 GET http://a.test/2 body=0: -> 200 len=1 "
			      "body=1\n" J("/3") "http/1.1 GET http://a.test/3 body=0: -> "
						 "200 len=1 body=1\n",
		""},
	/* the connection ends behind the answer, whoever says so */
	{{"cGET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", "s" OK("2\r\n\r\nhi")},
		"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
		J("/") "http/1.1 GET http://a.test/ body=0: -> 200 len=2 body=2\n", "cs"},
	{{"c" GET("/"), "sHTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", "S"}, GET("/"),
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end",
		J("/") "http/1.1 GET http://a.test/ body=0: -> 200 body=10\n", "cs"},
	/* HTTP/1.0 */
	{{"cGET / HTTP/1.0\r\n\r\n", "sHTTP/1.0 200 OK\r\n\r\nold", "S"}, "GET / HTTP/1.0\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nold",
		"judge GET http://a.test/ host=- port=0 path=/\n"
		"http/1.1 GET http://a.test/ body=0: -> 200 body=3\n",
		"cs"},
	{{"cGET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "s" OK("0\r\n\r\n")},
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
		"judge GET http://a.test/ host=- port=0 path=/\n"
		"http/1.1 GET http://a.test/ body=0: -> 200 len=0\n",
		""},
	/* bodies that none has */
	{{"cHEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n", "s" OK("99\r\n\r\n"), "c" GET("/"),
		 "sHTTP/1.1 204 N\r\n\r\n", "c" GET("/"),
		 "sHTTP/1.1 304 N\r\nContent-Length: 7\r\n\r\n"},
		"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n" GET("/") GET("/"),
		OK("99\r\n\r\n") "HTTP/1.1 204 N\r\n\r\nHTTP/1.1 304 N\r\nContent-Length: "
				 "7\r\n\r\n",
		"judge HEAD http://a.test/ host=a.test port=0 path=/\n"
		"http/1.1 HEAD http://a.test/ body=0: -> 200 len=99\n" J(
			"/") "http/1.1 GET http://a.test/ body=0: -> 204\n" J("/") "http/"
										   "1.1 "
										   "GET "
										   "http://"
										   "a.test/"
										   " body="
										   "0: -> "
										   "304 "
										   "len="
										   "7\n",
		""},
	/* hop-by-hop fields stay, lengths are written anew, names keep their case */
	{{"cGET /?q HTTP/1.1\r\nHOST:a.test:80 \r\nConnection: keep-alive, X, TE, Upgrade, "
	  "HTTP2-Settings\r\nX:  y\r\n"
	  "Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nKeep-Alive: "
	  "5\r\n"
	  "TE: trailers, gzip\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nContent-Length: "
	  "000\r\n\r\n",
		 "sHTTP/1.1 200\r\nUpgrade: h2\r\nConnection: Upgrade\r\nKeep-Alive: "
		 "timeout=5\r\n"
		 "content-length: 00\r\n\r\n"},
		"GET /?q HTTP/1.1\r\nHOST: a.test:80\r\nX: y\r\nTE: "
		"trailers\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 \r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n",
		"judge GET http://a.test:80/?q host=a.test port=80 path=/?q\n"
		"http/1.1 GET http://a.test:80/?q len=0 body=0: -> 200 len=0\n",
		""},
	/* absolute form is judged by its target and goes on in origin form */
	{{"cGET HTTP://B.Test.:81?x HTTP/1.1\r\nHost: a.test\r\n\r\n", "s" OK("0\r\n\r\n")},
		"GET /?x HTTP/1.1\r\nHost: B.Test.:81\r\n\r\n", OK("0\r\n\r\n"),
		"judge GET HTTP://B.Test.:81/?x host=b.test port=81 path=/?x\n"
		"http/1.1 GET HTTP://B.Test.:81/?x body=0: -> 200 len=0\n",
		""},
	/* leave to send a body comes from the server only */
	{{"cPOST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-Continue\r\nContent-Length: "
	  "3\r\n\r\n",
		 "sHTTP/1.1 100 Continue\r\n\r\n", "cabc", "s" OK("0\r\n\r\n")},
		"POST / HTTP/1.1\r\nHost: a.test\r\nExpect: "
		"100-Continue\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 100 Continue\r\n\r\n" OK("0\r\n\r\n"),
		"judge POST http://a.test/ host=a.test port=0 path=/\n"
		"http/1.1 POST http://a.test/ len=3 body=3:abc -> 200 len=0\n",
		""},
	{{"cPOST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: "
	  "3\r\n\r\n",
		 "sHTTP/1.1 417 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"},
		"POST / HTTP/1.1\r\nHost: a.test\r\nExpect: "
		"100-continue\r\nContent-Length: 3\r\n\r\n",
		"HTTP/1.1 417 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
		"judge POST http://a.test/ host=a.test port=0 path=/\n"
		"http/1.1 POST http://a.test/ len=3 body=0?: -> 417 len=2 body=2\n",
		"cs"},
	{{"c" GET("/"), "sHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 "
			"OK\r\nContent-Length: 0\r\n\r\n"},
		GET("/"), "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" OK("0\r\n\r\n"),
		J("/") "http/1.1 GET http://a.test/ body=0: -> 200 len=0\n", ""},
	/* trailers, and an end that the client leaves half open */
	{{"cPOST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: "
	  "Chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n",
		 "C", "s" OK("0\r\n\r\n")},
		NULL, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"judge POST http://a.test/ host=a.test port=0 path=/\n"
		"http/1.1 POST http://a.test/ body=3:abc -> 200 len=0\n",
		"cs"},
	/* an answer before the request's end, both kept */
	{{"cPOST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\na", "s" OK("0\r\n\r\n"),
		 "cbc" GET("/2"), "s" OK("0\r\n\r\n")},
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc" GET("/2"),
		OK("0\r\n\r\n") OK("0\r\n\r\n"),
		"judge POST http://a.test/ host=a.test port=0 path=/\n"
		"http/1.1 POST http://a.test/ len=3 body=3:abc -> 200 len=0\n" J(
			"/2") "http/1.1 GET http://a.test/2 body=0: -> 200 len=0\n",
		""},
	/* what ends early is told */
	{{"c" GET("/"), "S"}, GET("/"), "",
		J("/") "http/1.1 GET http://a.test/ body=0: -> 0 error=the server ended "
		       "without an answer\n",
		"cs"},
	{{"c" GET("/"), "s" OK("5\r\n\r\nab"), "S"}, GET("/"), OK("5\r\n\r\nab"),
		J("/") "http/1.1 GET http://a.test/ body=0: -> 200 len=5 body=2? error=the "
		       "server ended inside its answer\n",
		"cs"},
	{{"cPOST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\na", "C", "S"},
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\na", "",
		"judge POST http://a.test/ host=a.test port=0 path=/\n"
		"http/1.1 POST http://a.test/ len=3 body=1?:a -> 0 error=the client ended "
		"inside its request\n",
		"cs"},
	{{"C"}, "", "", "", "cs"},
	{{"S"}, "", "", "", "cs"},
	/* an answer to nothing is no answer to the next */
	{{"c" GET("/"), "s" OK("0\r\n\r\n"), "s" OK("0\r\n\r\n"), "c" GET("/2")}, GET("/"),
		OK("0\r\n\r\n"), J("/") "http/1.1 GET http://a.test/ body=0: -> 200 len=0\n", "cs"},
	/* websocket: 5 bytes masked, a ping, an answer in two frames */
	{{"cGET /ws HTTP/1.1\r\nHost: a.test\r\nUpgrade: WebSocket\r\nConnection: "
	  "Upgrade\r\nSec-WebSocket-Key: k\r\n\r\n",
		 "sHTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: "
		 "Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
		 "c\x81\x85\1\2\3\4\x69\x67\x6f\x68\x6e", "s\x89\x01p", "s\x01\x02he\x80\x03llo",
		 "S", "C"},
		"GET /ws HTTP/1.1\r\nHost: a.test\r\nUpgrade: "
		"WebSocket\r\nSec-WebSocket-Key: k\r\n"
		"Connection: Upgrade\r\n\r\n\x81\x85\1\2\3\4\x69\x67\x6f\x68\x6e",
		"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "
		"x\r\nConnection: Upgrade\r\n\r\n"
		"\x89\x01p\x01\x02he\x80\x03llo",
		J("/ws") "http/1.1 GET http://a.test/ws body=0: -> 101 upgrade=websocket\n"
			 "message http://a.test/ws out 1 body=5:hello\n"
			 "message http://a.test/ws in 9 body=1:p\n"
			 "message http://a.test/ws in 1 body=5:hello\n",
		"cs"},
	/* deflated by agreement: as it is, with a mark */
	{{"cGET /z HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	  "Sec-WebSocket-Key: k\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		 "sHTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		 "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		 "s\xc1\x03zzz"},
		NULL, NULL,
		J("/z") "http/1.1 GET http://a.test/z body=0: -> 101 upgrade=websocket\n"
			"message http://a.test/z in 1z body=3:zzz\n",
		""},
};

static const struct http_setup plain = {.name = "a.test",
	.address = "192.0.2.1",
	.port = 80,
	.body_limit = 65536,
	.hooks = &http_drive_hooks};

static void begin(struct http_drive *d, const struct http_setup *setup, size_t step)
{
	struct http_setup mine = *setup;

	*d = (struct http_drive){.step = step, .refuse_host = "denied.test"};
	mine.arg = d;
	http_machine_new(&mine, &d->machine);
}

static void play(struct http_drive *d, const char *const *steps, size_t cut)
{
	for (size_t i = 0; i < 8 && steps[i]; i++) {
		struct slice bytes = slice_of(steps[i] + 1);
		enum machine_side side =
			*steps[i] == 'c' || *steps[i] == 'C' ? MACHINE_CLIENT : MACHINE_SERVER;
		size_t first = cut < bytes.len ? cut : bytes.len;

		if (*steps[i] == 'C' || *steps[i] == 'S') {
			http_drive_eof(d, side);
			continue;
		}
		http_drive_send(d, side, (struct slice){.p = bytes.p, .len = first});
		http_drive_send(
			d, side, (struct slice){.p = bytes.p + first, .len = bytes.len - first});
	}
}

static void check_ends(struct http_drive *d, const char *ends)
{
	assert_int_equal(d->machine.ops->wants_end(d->machine.self, MACHINE_CLIENT),
		strchr(ends, 'c') != NULL);
	assert_int_equal(d->machine.ops->wants_end(d->machine.self, MACHINE_SERVER),
		strchr(ends, 's') != NULL);
}

static void check_text(struct str *got, const char *want)
{
	str_putc(got, '\0');
	if (want)
		assert_string_equal(got->p, want);
}

static void check(const struct row *row, size_t step, size_t cut)
{
	struct http_drive d;

	begin(&d, &plain, step);
	play(&d, row->steps, cut);
	check_ends(&d, row->ends);
	check_text(&d.got[MACHINE_SERVER], row->to_server);
	check_text(&d.got[MACHINE_CLIENT], row->to_client);
	check_text(&d.log, row->log);
	http_drive_done(&d);
}

static size_t longest(const struct row *row)
{
	size_t most = 0;

	for (size_t i = 0; i < 8 && row->steps[i]; i++)
		most = strlen(row->steps[i]) > most ? strlen(row->steps[i]) : most;
	return most;
}

/* Every step cut at every place, and byte by byte. */
static void test_exchanges(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t cut = 0; cut < longest(&rows[i]); cut++)
			check(&rows[i], 1 << 20, cut);
		check(&rows[i], 1, 0);
		check(&rows[i], 7, 0);
	}
}

static const struct {
	const char *request;
	unsigned status;
	bool keeps;
	const char *log; /* what it ends with */
} refusals[] = {
	{"GET http://denied.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", 403, true,
		"refused 403 GET http://denied.test/x host=denied.test [deny denied.test] No rule "
		"allows denied.test\n"},
	{"GET / HTTP/1.1\r\nHost: DENIED.test.\r\n\r\n", 403, true,
		"refused 403 GET http://DENIED.test./ host=denied.test [deny denied.test] No rule "
		"allows denied.test\n"},
	{"POST / HTTP/1.1\r\nHost: denied.test\r\nContent-Length: 3\r\n\r\nabc", 403, true, NULL},
	{"POST / HTTP/1.1\r\nHost: denied.test\r\nExpect: 100-continue\r\nContent-Length: "
	 "3\r\n\r\n",
		403, false, NULL},
	{"POST / HTTP/1.1\r\nHost: denied.test\r\nContent-Length: 3000000\r\n\r\nabc", 403, false,
		NULL},
	{"POST / HTTP/1.1\r\nHost: denied.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
		403, false, NULL},
	{"GET / HTTP/1.0\r\nHost: denied.test\r\n\r\n", 403, false, NULL},
	{"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n", 403, true,
		"judge CONNECT http://denied.test:443 host=denied.test port=443 path= connect\n"
		"refused 403 CONNECT http://denied.test:443 host=denied.test [deny denied.test] No "
		"rule allows denied.test\n"},
	{"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", 403, true, NULL},
	{"GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: tcp-tunnel\r\nConnection: Upgrade\r\n\r\n",
		403, true,
		"refused 403 GET http://a.test/ host=a.test [no other upgrade] The only upgrade of "
		"a "
		"connection that is passed "
		"on is websocket\n"},
	{"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nUpgrade: "
	 "websocket\r\nConnection: Upgrade\r\n"
	 "Sec-WebSocket-Key: k\r\n\r\n",
		403, true, NULL},
	{"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, false,
		"refused 400 GET - host=- [unreadable HTTP] the request names no good host\n"},
	{"GET / HTTP/1.1\r\nHost: \r\n\r\n", 400, false, NULL},
	{"GET / HTTP/1.1\r\nHost : a.test\r\n\r\n", 400, false,
		"refused 400  - host=- [unreadable HTTP] a field's name is not a word\n"},
	{"GET / HTTP/9.9\r\n\r\n", 505, false, NULL},
	{"\x16\x03\x01", 400, false, NULL},
};

/* Nothing of a refused request reaches the server; the client reads why, and may go on or not. */
static void test_refusals(void **state)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		for (size_t step = 1; step < 400; step += step < 20 ? 1 : 50) {
			const char *steps[8] = {NULL};
			scoped_str struct str script = {0}, status = {0};
			struct http_drive d;

			str_printf(&script, "c%s", refusals[i].request);
			str_printf(&status, "HTTP/1.%d %u ", !strstr(script.p, "HTTP/1.0"),
				refusals[i].status);
			steps[0] = script.p;
			steps[1] = "c" GET("/next");
			begin(&d, &plain, step);
			play(&d, steps, 0);
			assert_true(slice_starts(str_slice(&d.got[MACHINE_CLIENT]), status.p));
			assert_non_null(
				strstr(d.got[MACHINE_CLIENT].p, "application/problem+json"));
			check_ends(&d, refusals[i].keeps ? "" : "cs");
			check_text(&d.got[MACHINE_SERVER], refusals[i].keeps ? GET("/next") : "");
			if (refusals[i].log)
				assert_non_null(strstr(d.log.p, refusals[i].log));
			http_drive_done(&d);
		}
}

static void test_document(void **state)
{
	static const char *const steps[8] = {"cGET / HTTP/1.1\r\nHost: denied.test\r\n\r\n"};
	struct http_drive d;
	const char *body;

	begin(&d, &plain, 1000);
	play(&d, steps, 0);
	str_putc(&d.got[MACHINE_CLIENT], '\0');
	body = strstr(d.got[MACHINE_CLIENT].p, "\r\n\r\n") + 4;
	assert_string_equal(body,
		"{\"type\":\"urn:cloche:refused-by-sandbox\",\"title\":\"Refused by this sandbox's "
		"rules\","
		"\"status\":403,\"detail\":\"This request was refused by this sandbox's network "
		"rules for the host "
		"denied.test. No rule allows denied.test. Retrying will not help: nothing inside "
		"the sandbox can "
		"change the rules. Go on without it, or tell the user what was refused.\","
		"\"host\":\"denied.test\",\"rule\":\"deny denied.test\"}\n");
	http_drive_done(&d);
}

/* What a server says wrong becomes 502, or an early end where the answer has begun. */
static void test_bad_answers(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 1\n\n", "220 smtp ready\r\n\r\n",
		"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"};
	static const char *const late[8] = {
		"c" GET("/"), "sHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\nzz"};
	struct http_drive d;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		begin(&d, &plain, 5);
		http_drive_send(&d, MACHINE_CLIENT, slice_of(GET("/")));
		http_drive_send(&d, MACHINE_SERVER, slice_of(answers[i]));
		assert_true(slice_starts(
			str_slice(&d.got[MACHINE_CLIENT]), "HTTP/1.1 502 Bad Gateway\r\n"));
		assert_non_null(strstr(d.log.p, " error="));
		check_ends(&d, "cs");
		http_drive_done(&d);
	}
	begin(&d, &plain, 1000);
	play(&d, late, 0);
	check_text(&d.got[MACHINE_CLIENT],
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
	check_ends(&d, "cs");
	http_drive_done(&d);
}

/* A frame that is none breaks both sides off. */
static void test_bad_frames(void **state)
{
	static const char *const steps[8] = {
		"cGET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: "
		"Upgrade\r\nSec-WebSocket-Key: k\r\n\r\n",
		"sHTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"cSSH-2.0"};
	struct http_drive d;

	begin(&d, &plain, 1000);
	play(&d, steps, 0);
	assert_true(d.machine.ops->error(d.machine.self) < 0);
	assert_null(strstr(d.got[MACHINE_SERVER].p, "SSH"));
	http_drive_done(&d);
}

/* Other rules: what is under way and refused now is broken off, once, and told; between exchanges nothing is. */
static void test_other_rules(void **state)
{
	struct http_drive d;

	begin(&d, &plain, 1000);
	http_drive_send(&d, MACHINE_CLIENT, slice_of(GET("/1")));
	http_drive_send(&d, MACHINE_SERVER, slice_of(OK("0\r\n\r\n")));
	d.refuse_host = "a.test";
	assert_int_equal(d.machine.ops->check(d.machine.self, true), 0);
	d.refuse_host = "b.test";
	http_drive_send(&d, MACHINE_CLIENT,
		slice_of("POST /2 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nxx"));
	assert_int_equal(d.machine.ops->check(d.machine.self, true), 0);
	d.refuse_host = "a.test";
	assert_int_equal(d.machine.ops->check(d.machine.self, true), -EACCES);
	assert_non_null(strstr(d.log.p, "http/1.1 POST http://a.test/2 len=4 body=2?:xx -> 0 "
					"error=the rules in force now refuse "
					"it\nrefused 403 POST http://a.test/2 host=a.test [deny "
					"a.test] No rule allows a.test\n"));
	http_drive_done(&d);
}

/* 8 MiB each way through both framings: what waits stays small, nothing is lost, the copy is cut at its limit. */
static void test_bulk(void **state)
{
	enum { SIZE = 8 << 20 };
	scoped_str struct str body = {0}, head = {0};
	struct http_drive d;

	for (size_t i = 0; i < SIZE; i++)
		str_putc(&body, (char)('a' + i % 23));
	str_printf(&head, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n", SIZE);
	begin(&d, &plain, 50000);
	http_drive_send(&d, MACHINE_CLIENT, str_slice(&head));
	http_drive_send(&d, MACHINE_CLIENT, str_slice(&body));
	assert_int_equal(d.got[MACHINE_SERVER].len, head.len + body.len);
	assert_memory_equal(d.got[MACHINE_SERVER].p + head.len, body.p, SIZE);
	http_drive_send(&d, MACHINE_SERVER,
		slice_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n800000\r\n"));
	http_drive_send(&d, MACHINE_SERVER, str_slice(&body));
	http_drive_send(&d, MACHINE_SERVER, slice_of("\r\n0\r\n\r\n"));
	assert_true(d.most <= HTTP_HIGH_WATER + 2 * HTTP_PIECE);
	assert_true(d.got[MACHINE_CLIENT].len > SIZE);
	assert_non_null(strstr(d.log.p, " len=8388608 body=8388608~:abcdefg"));
	assert_non_null(strstr(d.log.p, " -> 200 body=8388608\n"));
	http_drive_done(&d);
}

/* A side that takes nothing stops the other. */
static void test_back_pressure(void **state)
{
	static char bytes[1 << 20];
	struct http_drive d;
	size_t taken = 0, n;

	begin(&d, &plain, 1000);
	http_drive_send(&d, MACHINE_CLIENT,
		slice_of("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9999999\r\n\r\n"));
	while ((n = (d.machine.ops->take)(d.machine.self, MACHINE_CLIENT, bytes, sizeof(bytes))) >
		0)
		taken += n;
	assert_in_range(taken, HTTP_HIGH_WATER, HTTP_HIGH_WATER + HTTP_PIECE);
	http_drive_done(&d);
}

/* Model APIs: more than the limit as long as the spare lasts, both ways, and it is given back. */
static void test_model_api(void **state)
{
	static char big[100000];
	size_t spare = 50000;
	struct http_setup setup = plain;
	struct http_drive d;

	memset(big, 'm', sizeof(big));
	setup.body_limit = 10;
	setup.spare = &spare;
	begin(&d, &setup, 100000);
	http_drive_send(&d, MACHINE_CLIENT,
		slice_of("POST / HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 30\r\n\r\n"
			 "123456789012345678901234567890"));
	http_drive_send(
		&d, MACHINE_SERVER, slice_of("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"));
	http_drive_send(&d, MACHINE_SERVER, (struct slice){big, 60000});
	assert_int_equal(spare, 0);
	http_drive_send(&d, MACHINE_SERVER, (struct slice){big, 40000});
	assert_int_equal(spare, 50000);
	assert_non_null(strstr(d.log.p,
		"body=30:123456789012345678901234567890 -> 200 len=100000 body=100000~:mmm"));
	http_drive_done(&d);
}

static void test_sniff(void **state)
{
	static const struct {
		const char *first;
		enum http_kind want;
	} cases[] = {
		{"", HTTP_KIND_MORE},
		{"G", HTTP_KIND_MORE},
		{"GET ", HTTP_KIND_MORE},
		{"GET /", HTTP_KIND_HTTP1},
		{"GET ht", HTTP_KIND_MORE},
		{"GET HTTPS://", HTTP_KIND_HTTP1},
		{"GET httq", HTTP_KIND_MORE},
		{"GET httq ", HTTP_KIND_MORE},
		{"GET httq \r\n", HTTP_KIND_OTHER},
		{"CONNECT a", HTTP_KIND_HTTP1},
		{"OPTIONS *", HTTP_KIND_HTTP1},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", HTTP_KIND_MORE},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_KIND_HTTP2},
		{"SSH-2.0-x\r\n", HTTP_KIND_OTHER},
		{"EHLO a\r\n", HTTP_KIND_OTHER},
		{"\x16\x03\x01", HTTP_KIND_OTHER},
		{"get /", HTTP_KIND_HTTP1},
		{"M-SEARCH2 /", HTTP_KIND_HTTP1},
		{"\r\n\nGET /", HTTP_KIND_HTTP1},
		{"\r\n", HTTP_KIND_MORE},
		{"GET \t  /", HTTP_KIND_HTTP1},
		{"GET ftp://a/ HTT", HTTP_KIND_MORE},
		{"GET ftp://a/ HTTP/1.1\r\n", HTTP_KIND_HTTP1},
		{"DESCRIBE rtsp://a/ RTSP/1.0\r\n", HTTP_KIND_OTHER},
		{"GET ftp:", HTTP_KIND_MORE},
		{"GET ftp;", HTTP_KIND_MORE},
		{"get ftp;", HTTP_KIND_OTHER},
		{"INVITE sip:a@b SIP/2.0\r\n", HTTP_KIND_OTHER},
		{"003egit-upload-pack /a", HTTP_KIND_OTHER},
		{"*1\r\n", HTTP_KIND_OTHER},
		/* Blanks of all kinds, before and between. */
		{" GET /", HTTP_KIND_HTTP1},
		{"\t\x0b\x1cGET\x0b\x0c\r/", HTTP_KIND_HTTP1},
		{"GET\xa0/x", HTTP_KIND_HTTP1},
		{" \r \n", HTTP_KIND_MORE},
		/* Methods and targets that are none. */
		{"1GET /", HTTP_KIND_HTTP1},
		{"!GET", HTTP_KIND_MORE},
		{"12", HTTP_KIND_OTHER},
		{"GET x HTTP/1.1\r\n", HTTP_KIND_HTTP1},
		{"GET x HTTP/1.1", HTTP_KIND_MORE},
		{"get x http/1.1\n", HTTP_KIND_HTTP1},
		{"GET x\r\nHTTP/1.1\r\n", HTTP_KIND_OTHER},
		{"\xef\xbb\xbfGET / HTTP/1.1\r\n", HTTP_KIND_HTTP1},
		{"GET\x1f?\x1fHTTP/1.1\r\n", HTTP_KIND_HTTP1},
		{"GET x\1 HTTP/1.1\r\n", HTTP_KIND_OTHER},
		/* What stands before a request for some. */
		{"PROXY T", HTTP_KIND_MORE},
		{"PROXY TCP4 ", HTTP_KIND_HTTP1},
		/* Text of other protocols. */
		{"hello there", HTTP_KIND_OTHER},
		{"{\"A\":1}", HTTP_KIND_OTHER},
		{"<?xml version='1.0'?>", HTTP_KIND_OTHER},
		{"CONNECT\nhost:a\n\n", HTTP_KIND_OTHER},
		{"NICK a\r\nUSER a", HTTP_KIND_OTHER},
		{"PING\r\n", HTTP_KIND_OTHER},
		{"\x0bMSH|^~\\&|A\rB", HTTP_KIND_OTHER},
		{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", HTTP_KIND_OTHER},
	};

	char line[3000];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(http_sniff(slice_of(cases[i].first)), cases[i].want);
	for (size_t i = 1; i < 12; i++)
		assert_int_equal(
			http_sniff((struct slice){"\r\n\r\n\0\r\nQUIT\n", i}), HTTP_KIND_MORE);
	assert_int_equal(http_sniff((struct slice){"\r\n\r\n\0\r\nQUIT\n!", 13}), HTTP_KIND_HTTP1);
	assert_int_equal(http_sniff((struct slice){"\r\n\r\n\0x", 6}), HTTP_KIND_OTHER);
	/* No line of another protocol is as long. */
	memset(line, 'y', sizeof(line));
	memcpy(line, "GET ", 4);
	assert_int_equal(http_sniff((struct slice){line, 2000}), HTTP_KIND_MORE);
	assert_int_equal(http_sniff((struct slice){line, sizeof(line)}), HTTP_KIND_HTTP1);
}

static void test_greeting(void **state)
{
	assert_true(http_is_greeting((struct slice){"\0\0\0\4\0\0\0\0\0", 9}));
	assert_true(http_is_greeting((struct slice){"\0\0\x12\4\0\0\0\0\0xxxx", 13}));
	assert_true(http_is_greeting((struct slice){"\0\0\6", 3}));
	assert_false(http_is_greeting((struct slice){"\0\0\5\4\0\0\0\0\0", 9}));
	assert_false(http_is_greeting((struct slice){"\0\0\6\1\0\0\0\0\0", 9}));
	assert_false(http_is_greeting((struct slice){"\0\0\6\4\1\0\0\0\0", 9}));
	assert_false(http_is_greeting(slice_of("SSH-2.0-x")));
	assert_false(http_is_greeting(slice_of("")));
}

static void test_model_names(void **state)
{
	assert_true(http_is_model_api("api.anthropic.com"));
	assert_true(http_is_model_api("me.openai.azure.com"));
	assert_true(http_is_model_api("europe-west1-aiplatform.googleapis.com"));
	assert_true(http_is_model_api("bedrock-runtime.eu-west-1.amazonaws.com"));
	assert_false(http_is_model_api("xapi.anthropic.com"));
	assert_false(http_is_model_api("s3.amazonaws.com"));
	assert_false(http_is_model_api(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exchanges),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_bad_frames),
		cmocka_unit_test(test_bulk),
		cmocka_unit_test(test_back_pressure),
		cmocka_unit_test(test_model_api),
		cmocka_unit_test(test_sniff),
		cmocka_unit_test(test_other_rules),
		cmocka_unit_test(test_greeting),
		cmocka_unit_test(test_model_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
