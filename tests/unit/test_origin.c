/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are this server's, and which a page of another origin made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/origin.h"
#include "util/mem.h"
#include "util/str.h"

enum way {
	PLAIN,
	TLS,
	LOCAL, /* the Unix socket */
	INSIDE,
};

#define NAMES "[\"cloche.example.org\", \"box:8443\", \"https://front.example.org\"]"

static const struct {
	const char *host, *more; /* host NULL: HTTP/1.0 without one; more: further lines */
	enum way way;
	unsigned want; /* 0: it may go on */
} rows[] = {
	/* hosts; the connection came to 192.0.2.7 */
	{"127.0.0.1:7410", "", PLAIN, 0},
	{"127.0.0.1", "", PLAIN, 0},
	{"127.9.9.9:1", "", PLAIN, 0},
	{"[::1]:7410", "", PLAIN, 0},
	{"[::ffff:127.0.0.1]", "", PLAIN, 0},
	{"localhost:7410", "", PLAIN, 0},
	{"LOCALHOST", "", PLAIN, 0},
	{"192.0.2.7:7410", "", PLAIN, 0},
	{"[::ffff:192.0.2.7]", "", PLAIN, 0},
	{"cloche.example.org", "", PLAIN, 0},
	{"Cloche.Example.ORG:99", "", TLS, 0},
	{"box:8443", "", PLAIN, 0},
	{"box", "", PLAIN, 0},
	{"front.example.org", "", PLAIN, 0},
	{NULL, "", PLAIN, 0},
	{"evil.test", "", PLAIN, 421},
	{"evil.test", "", TLS, 421},
	{"evil.test", "", LOCAL, 0},
	{"localhost.evil.test", "", PLAIN, 421},
	{"localhost.", "", PLAIN, 421},
	{"127.0.0.1.evil.test", "", PLAIN, 421},
	{"127.1", "", PLAIN, 421},
	{"0x7f000001", "", PLAIN, 421},
	{"2130706433", "", PLAIN, 421},
	{"192.0.2.8", "", PLAIN, 421},
	{"0.0.0.0", "", PLAIN, 421},
	{"[::]", "", PLAIN, 421},
	{"x.cloche.example.org", "", PLAIN, 421},
	{"cloche.example.org.", "", PLAIN, 421},
	{"", "", PLAIN, 421},
	{"a@127.0.0.1", "", PLAIN, 421},
	{"http://127.0.0.1", "", PLAIN, 421},
	{"127.0.0.1:99999", "", PLAIN, 421},
	/* from a sandbox it is called by one name */
	{"cloche.internal", "", INSIDE, 0},
	{"Cloche.Internal:80", "", INSIDE, 0},
	{NULL, "", INSIDE, 0},
	{"localhost", "", INSIDE, 421},
	{"127.0.0.1", "", INSIDE, 421},
	{"192.0.2.7", "", INSIDE, 421},
	{"cloche.example.org", "", INSIDE, 421},
	{"x.cloche.internal", "", INSIDE, 421},
	{"cloche.internal", "", PLAIN, 421},
	{"cloche.internal", "Origin: http://cloche.internal\r\n", INSIDE, 0},
	{"cloche.internal", "Origin: http://allowed.test\r\n", INSIDE, 403},
	/* where it is made */
	{"127.0.0.1:7410", "Origin: http://127.0.0.1:7410\r\n", PLAIN, 0},
	{"127.0.0.1:7410", "Origin: HTTP://127.0.0.1:7410\r\n", PLAIN, 0},
	{"127.0.0.1:7410", "Origin: http://127.0.0.1:7411\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: http://localhost:7410\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: https://127.0.0.1:7410\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: http://127.0.0.1\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: https://evil.test\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: null\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: \r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: 127.0.0.1:7410\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: http://127.0.0.1:7410/\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "origin: http://127.0.0.1:7410 http://evil.test\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: http://127.0.0.1:7410\r\nOrigin: http://evil.test\r\n", PLAIN,
		403},
	{"127.0.0.1:7410", "Origin: moz-extension://abc\r\n", PLAIN, 403},
	{"evil.test", "Origin: http://evil.test\r\n", PLAIN, 421},
	{"localhost", "Origin: http://localhost\r\n", PLAIN, 0},
	{"localhost", "Origin: http://localhost:80\r\n", PLAIN, 0},
	{"localhost:443", "Origin: https://localhost\r\n", TLS, 0},
	{"localhost:7410", "Origin: http://localhost:7410\r\n", TLS, 403},
	{"localhost:7410", "Origin: https://localhost:7410\r\n", TLS, 0},
	/* behind a proxy that has the TLS */
	{"cloche.example.org", "Origin: https://cloche.example.org\r\n", PLAIN, 0},
	{"cloche.example.org:7410", "Origin: https://cloche.example.org\r\n", PLAIN, 403},
	{"cloche.example.org", "Origin: https://cloche.example.org:7410\r\n", PLAIN, 403},
	{"cloche.example.org", "Origin: http://cloche.example.org\r\n", TLS, 403},
	{"127.0.0.1:7410", "Origin: https://cloche.example.org\r\n", PLAIN, 403},
	/* ... and puts another Host in its place */
	{"127.0.0.1:7410", "Origin: https://front.example.org\r\n", PLAIN, 0},
	{"127.0.0.1:7410", "Origin: https://front.example.org:443\r\n", PLAIN, 0},
	{"127.0.0.1:7410", "Origin: http://front.example.org\r\n", PLAIN, 403},
	{"127.0.0.1:7410", "Origin: https://front.example.org:8443\r\n", PLAIN, 403},
	{"any", "Origin: https://front.example.org\r\n", LOCAL, 0},
	/* a Host that nobody checked proves nothing */
	{"evil.test", "Origin: http://evil.test\r\n", LOCAL, 403},
	{NULL, "Origin: http://evil.test\r\n", PLAIN, 403},
	/* what a browser says beside */
	{"localhost", "Sec-Fetch-Site: same-origin\r\n", PLAIN, 0},
	{"localhost", "Sec-Fetch-Site: none\r\n", PLAIN, 0},
	{"localhost", "Sec-Fetch-Site: same-site\r\n", PLAIN, 403},
	{"localhost", "Sec-Fetch-Site: cross-site\r\n", PLAIN, 403},
	{"localhost", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", PLAIN, 403},
	{"any", "Sec-Fetch-Site: cross-site\r\n", LOCAL, 403},
	{"localhost", "Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n", PLAIN, 403},
};

static struct http_plan ask(
	const struct origin *origin, const char *host, const char *more, enum way way)
{
	const struct http_peer peer = {.is_local = way == LOCAL,
		.is_tls = way == TLS,
		.sandbox = {way == INSIDE ? 's' : '\0'},
		.to = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7}};
	struct http_plan plan = {0};
	scoped_str struct str text = {0};
	struct http1_head head;
	struct http1_fault fault;

	str_printf(&text, "GET / HTTP/1.%d\r\n", host ? 1 : 0);
	if (host)
		str_printf(&text, "Host: %s\r\n", host);
	str_printf(&text, "%s\r\n", more);
	if (http1_read_request(str_slice(&text), &head, &fault) < 0)
		plan.refusal = (struct http_refusal){.status = 421}; /* earlier, and as well */
	else
		origin_check(origin, &head, &peer, &plan);
	http1_head_done(&head);
	return plan;
}

static void test_requests(void **state)
{
	json_t *config = json_loads("{\"names\": " NAMES "}", 0, NULL);
	scoped(origin) struct origin *origin = NULL;

	assert_int_equal(origin_new(config, &origin, NULL), 0);
	json_decref(config);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_plan plan = ask(origin, rows[i].host, rows[i].more, rows[i].way);

		if (plan.refusal.status != rows[i].want)
			fail_msg("Host '%s', '%s': %u, not %u", rows[i].host, rows[i].more,
				plan.refusal.status, rows[i].want);
	}
}

static void test_tls_from_now_on(void **state)
{
	json_t *config = json_loads("{\"names\": " NAMES "}", 0, NULL);
	scoped(origin) struct origin *origin = NULL;

	assert_int_equal(origin_new(config, &origin, NULL), 0);
	json_decref(config);
	assert_true(ask(origin, "cloche.example.org", "", TLS).is_strict);
	assert_false(ask(origin, "cloche.example.org", "", PLAIN).is_strict);
	assert_false(ask(origin, "localhost", "", TLS).is_strict);
	assert_false(ask(origin, "127.0.0.1", "", TLS).is_strict);
}

static void test_names(void **state)
{
	static const struct {
		const char *config;
		int want;
	} configs[] = {
		{"{}", 0},
		{"{\"names\": []}", 0},
		{"{\"names\": [\"a\", \"[::1]:5\"]}", 0},
		{"{\"names\": \"a\"}", -EINVAL},
		{"{\"names\": [1]}", -EINVAL},
		{"{\"names\": [\"\"]}", -EINVAL},
		{"{\"names\": [\"a b\"]}", -EINVAL},
		{"{\"names\": [\"*.example.org\"]}", -EINVAL},
		{"{\"names\": [\"https://a/\"]}", -EINVAL},
		{"{\"names\": [\"ftp://a\"]}", -EINVAL},
	};

	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		json_t *config = json_loads(configs[i].config, 0, NULL);
		scoped(origin) struct origin *origin = NULL;
		struct err err = {0};

		assert_int_equal(origin_new(config, &origin, &err), configs[i].want);
		assert_int_equal(err.msg[0] != 0, configs[i].want < 0);
		json_decref(config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_tls_from_now_on),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
