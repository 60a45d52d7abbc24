/* SPDX-License-Identifier: Apache-2.0 */
/* Previews: their names, who may see them, and the heads of what passes through. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/preview.h"
#include "server/preview_head.h"
#include "server/preview_pass.h"
#include "server/previews.h"
#include "util/mem.h"

#define ID     "pv_0123456789abcdef"
#define OTHER  "pv_0123456789abcdeg"
#define HOST   "pv-0123456789abcdef.preview.localhost:7411"
#define ORIGIN "http://" HOST
#define KEY    "ke_0123456789abcdef"

static char folder[] = "/tmp/cloche-preview-XXXXXX";
static struct secret_box *box;

static int open_box(void **state)
{
	scoped_mem char *inner = mkdtemp(folder) ? mem_printf("%s/server", folder) : NULL;
	struct err err;

	return inner && mkdir(inner, 0700) == 0 ? secret_box_open(folder, &box, &err) : -1;
}

static int close_box(void **state)
{
	scoped_mem char *inner = mem_printf("%s/server", folder);
	scoped_mem char *key = mem_printf("%s/secrets.key", inner);

	secret_box_free(box);
	return unlink(key) < 0 || rmdir(inner) < 0 || rmdir(folder) < 0 ? -1 : 0;
}

/* ---- names ---- */

static const struct {
	const char *host;
	bool is_one;
} hosts[] = {
	{"pv-0123456789abcdef.preview.localhost", true},
	{"PV-0123456789ABCDEF.Preview.LocalHost", true},
	{"pv_0123456789abcdef.preview.localhost", false},
	{"pv-0123456789abcde.preview.localhost", false},
	{"pv-0123456789abcdef0.preview.localhost", false},
	{"pv-0123456789abcdef.preview.localhost.", false},
	{"pv-0123456789abcdef.preview.localhos", false},
	{"x.pv-0123456789abcdef.preview.localhost", false},
	{"pv-0123456789abcdef-preview.localhost", false},
	{"sb-0123456789abcdef.preview.localhost", false},
	{"pv-0123456789abcdeu.preview.localhost", false}, /* no letter of an id */
	{"preview.localhost", false},
	{"", false},
};

static void test_hosts(void **state)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		char id[ID_SIZE];
		bool is_one = preview_read_host(slice_of(hosts[i].host), "preview.localhost", id);

		if (is_one != hosts[i].is_one || (is_one && strcmp(id, ID) != 0))
			fail_msg("%s", hosts[i].host);
	}
}

static void test_domains(void **state)
{
	static const char *const good[] = {"preview.localhost", "a.b", "x-1.example.org"};
	static const char *const bad[] = {"localhost", "", ".", "a..b", ".a.b", "a.b.", "A.b",
		"a b.c", "a.b:1", "*.a.b", "a.b/c"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(preview_is_domain(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(preview_is_domain(bad[i]));
}

static void test_config(void **state)
{
	static const struct {
		const char *config, *says; /* NULL: it is good */
	} rows[] = {
		{"{}", NULL},
		{"{\"previews\":{}}", NULL},
		{"{\"previews\":{\"domain\":\"p.example.org\",\"port\":443,\"tls\":true}}", NULL},
		{"{\"previews\":[]}", "is an object"},
		{"{\"previews\":{\"domain\":\"localhost\"}}", "'domain' is a name"},
		{"{\"previews\":{\"domain\":1}}", "'domain' is a name"},
		{"{\"previews\":{\"port\":0}}", "'port' is a number"},
		{"{\"previews\":{\"port\":65536}}", "'port' is a number"},
		{"{\"previews\":{\"port\":\"443\"}}", "'port' is a number"},
		{"{\"previews\":{\"tls\":1}}", "'tls' is true or false"},
		{"{\"previews\":{\"domains\":1}}", "has no 'domains'"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *config = json_loads(rows[i].config, 0, NULL);
		struct err err = {0};
		int r = previews_check(config, &err);

		assert_int_equal(r, rows[i].says ? -EINVAL : 0);
		assert_true(!rows[i].says || strstr(err.msg, rows[i].says));
		json_decref(config);
	}
}

static struct preview make(void)
{
	struct preview preview = {.id = ID,
		.account = "a",
		.sandbox = "sb_0123456789abcdef",
		.name = "a \"name\"",
		.port = 65535,
		.created_ms = 1};

	preview_new_round(preview.round);
	return preview;
}

static void test_object(void **state)
{
	static const char *const bad[] = {"", "{}", "[]",
		"{\"port\":0,\"name\":\"\",\"round\":\"\"}",
		"{\"port\":65536,\"name\":\"\",\"round\":\"\"}", "{\"port\":1,\"round\":\"\"}",
		"{\"port\":1,\"name\":\"\",\"round\":\"00000000000000000\"}"};
	const struct preview preview = make();
	struct preview got;
	scoped_str struct str json = {0};
	struct store_object object = {.account = "a", .sandbox = preview.sandbox, .name = ID};

	preview_write_object(&preview, &json);
	object.json = json.p;
	assert_int_equal(preview_read_object(&object, &got), 0);
	assert_memory_equal(&got, &preview, sizeof(got));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		object.json = bad[i];
		assert_int_equal(preview_read_object(&object, &got), -EINVAL);
	}
}

static void test_answer(void **state)
{
	const struct preview preview = make();
	const struct preview_place places[] = {
		{"preview.localhost", 7411, false}, {"p.example.org", 443, true}};
	static const char *const urls[] = {
		ORIGIN "/", "https://pv-0123456789abcdef.p.example.org/"};

	for (size_t i = 0; i < 2; i++) {
		scoped_str struct str json = {0};
		scoped_mem char *want = mem_printf(
			"{\"id\":\"" ID "\",\"sandbox\":\"sb_0123456789abcdef\",\"port\":65535,"
			"\"visibility\":\"private\",\"name\":\"a \\\"name\\\"\",\"url\":\"%s\","
			"\"created_at\":\"1970-01-01T00:00:00.001Z\"}",
			urls[i]);

		preview_write(&preview, &places[i], &json);
		assert_string_equal(json.p, want);
	}
}

/* ---- passes ---- */

static void read_request(const char *fields, struct str *bytes, struct http1_head *ret_head)
{
	struct http1_fault fault;

	str_printf(bytes, "GET / HTTP/1.1\r\nHost: " HOST "\r\n%s\r\n", fields);
	if (http1_read_request(str_slice(bytes), ret_head, &fault) < 0)
		fail_msg("%s: %s", fields, fault.why);
}

/* The value of the cookie that is set. */
static char *set_cookie(const struct preview *preview, int64_t now_s, bool is_tls)
{
	scoped_str struct str line = {0};
	struct err err = {0};
	const char *want =
		is_tls ? "Set-Cookie: __Host-cloche_preview=" : "Set-Cookie: cloche_preview=";
	const char *more = is_tls ? "; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure\r\n"
	                          : "; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax\r\n";
	size_t n;

	assert_int_equal(preview_pass_add_cookie(box, preview, KEY, now_s, is_tls, &line, &err), 0);
	assert_int_equal(strncmp(line.p, want, strlen(want)), 0);
	n = strcspn(line.p + strlen(want), ";");
	assert_string_equal(line.p + strlen(want) + n, more);
	return mem_copy(line.p + strlen(want), n);
}

static int find(
	const char *id, const char *cookies, int64_t now_s, bool is_tls, struct preview_pass *pass)
{
	scoped_str struct str bytes = {0};
	struct http1_head head;
	int r;

	read_request(cookies, &bytes, &head);
	r = preview_pass_find(box, id, &head, now_s, is_tls, pass);
	http1_head_done(&head);
	return r;
}

static void test_passes(void **state)
{
	const struct preview preview = make();
	scoped_mem char *value = set_cookie(&preview, 1000, false);
	scoped_mem char *tls = set_cookie(&preview, 1000, true);
	static const struct {
		const char *cookies; /* %s: the value */
		bool is_found;
	} rows[] = {
		{"Cookie: cloche_preview=%s\r\n", true},
		{"Cookie: a=b;cloche_preview=%s ; c=d\r\n", true},
		{"Cookie: a=b\r\nCookie: cloche_preview=%s\r\n", true},
		{"Cookie: cloche_preview=x; cloche_preview=; cloche_preview=%s\r\n", true},
		{"Cookie: cloche_preview = %s\r\n", false}, /* no browser writes it so */
		{"Cookie: Cloche_Preview=%s\r\n", false},
		{"Cookie: __Host-cloche_preview=%s\r\n", false},
		{"Cookie: cloche_preview=x%s\r\n", false},
		{"Cookie: cloche_preview=\"%s\"\r\n", false},
		{"X-Cookie: cloche_preview=%s\r\n", false},
		{"Cookie: cloche_preview=1;cloche_preview=2;cloche_preview=3;cloche_preview=4;"
		 "cloche_preview=5;cloche_preview=6;cloche_preview=7;cloche_preview=8;"
		 "cloche_preview=%s\r\n",
			false},
	};
	struct preview_pass pass;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		scoped_str struct str cookies = {0};
		const char *mark = strstr(rows[i].cookies, "%s");

		str_add(&cookies, rows[i].cookies, (size_t)(mark - rows[i].cookies));
		str_puts(&cookies, value);
		str_puts(&cookies, mark + 2);
		if ((find(ID, cookies.p, 1000, false, &pass) == 0) != rows[i].is_found)
			fail_msg("%s", rows[i].cookies);
	}
	{
		scoped_mem char *plain = mem_printf("Cookie: cloche_preview=%s\r\n", value);
		scoped_mem char *host = mem_printf("Cookie: __Host-cloche_preview=%s\r\n", tls);

		assert_int_equal(find(ID, plain, 1000, false, &pass), 0);
		assert_string_equal(pass.key, KEY);
		assert_string_equal(pass.round, preview.round);
		assert_int_equal(pass.expires_s, 1000 + PREVIEW_PASS_S);
		assert_int_equal(find(ID, plain, 999 + PREVIEW_PASS_S, false, &pass), 0);
		assert_int_equal(find(ID, plain, 1000 + PREVIEW_PASS_S, false, &pass), -ENOENT);
		assert_int_equal(find(OTHER, plain, 1000, false, &pass), -ENOENT);
		assert_int_equal(find(ID, plain, 1000, true, &pass), -ENOENT);
		assert_int_equal(find(ID, host, 1000, true, &pass), 0);
		assert_int_equal(find(ID, host, 1000, false, &pass), -ENOENT);
	}
}

static void test_tokens(void **state)
{
	char token[PREVIEW_TOKEN_SIZE], other[PREVIEW_TOKEN_SIZE];
	char a[PREVIEW_SPENT_SIZE], b[PREVIEW_SPENT_SIZE];
	static const char *const bad[] = {"/.cloche/open",
		"/.cloche/open?token=", "/.cloche/open?x=1&token=", "/.cloche/open?Token="};

	preview_pass_new_token(token);
	preview_pass_new_token(other);
	assert_string_not_equal(token, other);
	preview_pass_spent(ID, token, a);
	preview_pass_spent(OTHER, token, b);
	assert_string_not_equal(a, b);
	assert_int_equal(strlen(a), ID_LEN + 1 + DIGEST_HEX_LEN);
	assert_int_equal(strncmp(a, ID ".", ID_LEN + 1), 0);
	assert_null(strstr(a, token));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		scoped_mem char *target = mem_printf("%s%s", bad[i],
			i == 1 ? token + 1
			: i    ? token
			       : "");

		assert_null(preview_pass_token_in(slice_of(target)).p);
	}
	{
		scoped_mem char *good = mem_printf("/.cloche/open?token=%s", token);
		scoped_mem char *more = mem_printf("%s&x", good);

		assert_true(slice_is(preview_pass_token_in(slice_of(good)), token));
		assert_null(preview_pass_token_in(slice_of(more)).p);
	}
}

static const struct {
	const char *fields;
	bool is_home;
} pages[] = {
	{"", true},
	{"Origin: " ORIGIN "\r\n", true},
	{"Origin: https://" HOST "\r\n", true}, /* something before us has TLS */
	{"Origin: http://PV-0123456789abcdef.preview.localhost:7411\r\n", true},
	{"Sec-Fetch-Site: same-origin\r\n", true},
	{"Sec-Fetch-Site: none\r\n", true},
	{"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
		true},
	{"Origin: null\r\n", false},
	{"Origin: \r\n", false},
	{"Origin: http://pv-0123456789abcdeg.preview.localhost:7411\r\n", false},
	{"Origin: http://pv-0123456789abcdef.preview.localhost\r\n", false},
	{"Origin: http://pv-0123456789abcdef.preview.localhost:7410\r\n", false},
	{"Origin: " ORIGIN ".evil\r\n", false},
	{"Origin: ftp://" HOST "\r\n", false},
	{"Origin: " ORIGIN "\r\nOrigin: " ORIGIN "\r\n", false},
	{"Sec-Fetch-Site: same-site\r\n", false},
	{"Sec-Fetch-Site: cross-site\r\n", false},
	{"Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n", false},
	{"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
		false},
	{"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: document\r\n",
		false},
	{"Origin: null\r\nSec-Fetch-Site: same-origin\r\n", false},
};

static void test_pages(void **state)
{
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		scoped_str struct str bytes = {0};
		struct http1_head head;

		read_request(pages[i].fields, &bytes, &head);
		if (preview_pass_is_at_home(&head) != pages[i].is_home)
			fail_msg("%s", pages[i].fields);
		http1_head_done(&head);
	}
}

/* ---- heads ---- */

#define IN      "Host: localhost:3000\r\n"
#define FROM    "X-Forwarded-For: 192.0.2.7\r\nX-Cloche-Origin: " ORIGIN "\r\n"
#define UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n"

static const struct {
	const char *line, *fields, *want; /* without Host; what goes in */
} requests[] = {
	{"GET /a?b HTTP/1.1", "", "GET /a?b HTTP/1.1\r\n" IN FROM "\r\n"},
	{"GET / HTTP/1.0", "", "GET / HTTP/1.1\r\n" IN FROM "\r\n"},
	{"POST / HTTP/1.1", "Content-Length: 5\r\nX: y\r\n",
		"POST / HTTP/1.1\r\n" IN "X: y\r\n" FROM "Content-Length: 5\r\n\r\n"},
	{"POST / HTTP/1.1", "transfer-encoding: Chunked\r\n",
		"POST / HTTP/1.1\r\n" IN FROM "Transfer-Encoding: chunked\r\n\r\n"},
	{"GET / HTTP/1.1",
		"Connection: close, X-One\r\nConnection: x-two\r\nX-One: 1\r\nX-TWO: 2\r\nX-Three: "
		"3\r\nKeep-Alive: 1\r\nTE: gzip\r\nTrailer: X\r\nProxy-Authorization: x\r\n"
		"Proxy-Connection: x\r\n",
		"GET / HTTP/1.1\r\n" IN "X-Three: 3\r\n" FROM "\r\n"},
	{"GET / HTTP/1.1",
		"x-forwarded-proto: https\r\nX-Forwarded-Anything: 1\r\nForwarded: x\r\nX-Real-IP: "
		"1\r\nX-Cloche-Origin: http://evil\r\n",
		"GET / HTTP/1.1\r\n" IN FROM "\r\n"},
	{"GET / HTTP/1.1",
		"Cookie: a=1; cloche_preview=x; b=2\r\nCookie: __Host-cloche_preview=y\r\nCOOKIE: "
		"CLOCHE_PREVIEW=z ;c=3\r\n",
		"GET / HTTP/1.1\r\n" IN "Cookie: a=1; b=2\r\nCOOKIE: c=3\r\n" FROM "\r\n"},
	{"GET / HTTP/1.1", "Authorization: Bearer clo_x\r\nAuthorization: basic YTpi\r\n",
		"GET / HTTP/1.1\r\n" IN "Authorization: basic YTpi\r\n" FROM "\r\n"},
	{"GET / HTTP/1.1", "Origin: " ORIGIN "\r\nReferer: " ORIGIN "/x?y\r\n",
		"GET / HTTP/1.1\r\n" IN "Origin: http://localhost:3000\r\nReferer: "
		"http://localhost:3000/x?y\r\n" FROM "\r\n"},
	{"GET / HTTP/1.1", "Origin: http://evil\r\nReferer: " ORIGIN ".evil/\r\n",
		"GET / HTTP/1.1\r\n" IN "Origin: http://evil\r\nReferer: " ORIGIN ".evil/\r\n" FROM
		"\r\n"},
	{"GET / HTTP/1.1", "Upgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n",
		"GET / HTTP/1.1\r\n" IN FROM UPGRADE "\r\n"},
	{"GET / HTTP/1.1", "Upgrade: h2c\r\nConnection: upgrade\r\n",
		"GET / HTTP/1.1\r\n" IN FROM "\r\n"},
	{"GET / HTTP/1.1", "Upgrade: websocket\r\n", "GET / HTTP/1.1\r\n" IN FROM "\r\n"},
	{"POST / HTTP/1.1", "Upgrade: websocket\r\nConnection: upgrade\r\n",
		"POST / HTTP/1.1\r\n" IN FROM "\r\n"},
	{"GET / HTTP/1.0", "Upgrade: websocket\r\nConnection: upgrade\r\n",
		"GET / HTTP/1.1\r\n" IN FROM "\r\n"},
	{"POST / HTTP/1.1", "Expect: 100-continue\r\nContent-Length: 0\r\n",
		"POST / HTTP/1.1\r\n" IN "Expect: 100-continue\r\n" FROM "Content-Length: "
		"0\r\n\r\n"},
};

static const struct preview_way way = {
	.port = 3000, .host = {HOST, sizeof(HOST) - 1}, .client = {"192.0.2.7", 9}};

static void read_line(
	const char *line, const char *fields, struct str *bytes, struct http1_head *ret_head)
{
	struct http1_fault fault;

	str_printf(bytes, "%s\r\nHost: " HOST "\r\n%s\r\n", line, fields);
	if (http1_read_request(str_slice(bytes), ret_head, &fault) < 0)
		fail_msg("%s %s: %s", line, fields, fault.why);
}

static void test_requests(void **state)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		scoped_str struct str bytes = {0}, out = {0};
		struct http1_head head;

		read_line(requests[i].line, requests[i].fields, &bytes, &head);
		preview_head_add_request(&head, &way, &out);
		assert_string_equal(out.p, requests[i].want);
		http1_head_done(&head);
	}
}

static const struct {
	const char *line, *in, *want; /* of the request; the answer; what comes out */
	enum http1_framing framing;
	bool is_last;
} answers[] = {
	{"GET / HTTP/1.1", "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nX: y\r\n\r\n",
		"HTTP/1.1 200 Fine\r\nX: y\r\nContent-Length: 2\r\n\r\n", HTTP1_LENGTH, false},
	{"GET / HTTP/1.1", "HTTP/1.0 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_CHUNKED, false},
	{"GET / HTTP/1.0", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", HTTP1_UNTIL_CLOSE, true},
	{"HEAD / HTTP/1.1", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", HTTP1_NO_BODY, false},
	{"GET / HTTP/1.1", "HTTP/1.1 304 \r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 304 \r\nContent-Length: 7\r\n\r\n", HTTP1_NO_BODY, false},
	{"GET / HTTP/1.1", "HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 204 No\r\n\r\n", HTTP1_NO_BODY, false},
	{"GET / HTTP/1.1", "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n",
		"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n", HTTP1_NO_BODY, false},
	{"GET / HTTP/1.1",
		"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: "
		"Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
		"HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: x\r\n" UPGRADE "\r\n",
		HTTP1_NO_BODY, false},
	{"GET / HTTP/1.1",
		"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: "
		"1\r\nContent-Length: 0\r\nUpgrade: h2c\r\nTrailer: x\r\nAlt-Svc: x\r\nNEL: "
		"x\r\nReport-To: x\r\nClear-Site-Data: \"*\"\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP1_LENGTH, false},
	{"GET / HTTP/1.1",
		"HTTP/1.1 302 \r\nContent-Length: 0\r\nLocation: http://LOCALHOST:3000/x\r\n\r\n",
		"HTTP/1.1 302 \r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", HTTP1_LENGTH, false},
	{"GET / HTTP/1.1",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: cloche_preview=x\r\n"
		"set-cookie: a=b; DOMAIN=x; Path=/\r\nSet-Cookie: =cloche_preview=x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nset-cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n",
		HTTP1_LENGTH, false},
};

static void test_answers(void **state)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		scoped_str struct str bytes = {0}, out = {0};
		struct http1_head request, answer;
		struct http1_fault fault;
		struct preview_answer how;

		read_line(answers[i].line, "", &bytes, &request);
		assert_int_equal(http1_read_response(
					 slice_of(answers[i].in), request.method, &answer, &fault),
			0);
		how = preview_head_add_answer(&answer, &request, &way, false, &out);
		assert_string_equal(out.p, answers[i].want);
		assert_int_equal(how.framing, answers[i].framing);
		assert_int_equal(how.is_last, answers[i].is_last);
		http1_head_done(&request);
		http1_head_done(&answer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_object),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, open_box, close_box);
}
