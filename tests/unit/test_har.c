/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <cmocka.h>

#include "event/event_json.h"
#include "report/har.h"

static const char *const events[] = {
	/* ended first, began second */
	"{\"seq\":1,\"kind\":\"net.http\",\"wall_ms\":1795961402500,\"pid\":3,\"exec\":\"ex_a\","
	"\"flow\":7,"
	"\"protocol\":\"h2\",\"host\":\"a.test\",\"address\":\"203.0.113.1\",\"port\":443,"
	"\"method\":\"POST\","
	"\"url\":\"https://a.test/"
	"v1?x=a%20b&flag&y=c+d\",\"headers\":{\"content-type\":\"application/json\"},"
	"\"body\":\"{}\",\"body_encoding\":\"utf8\",\"body_bytes\":2,\"status\":302,\"response_"
	"headers\":{"
	"\"content-type\":\"text/html\",\"location\":\"/"
	"there\"},\"response_bytes\":5,\"response_body\":"
	"\"/"
	"w==\",\"response_body_encoding\":\"base64\",\"duration_ns\":250000000,\"secrets\":["
	"\"KEY\"]}",
	"{\"seq\":2,\"kind\":\"net.http\",\"wall_ms\":1795961402600,\"protocol\":\"http/"
	"1.1\",\"flow\":8,"
	"\"method\":\"GET\",\"url\":\"http://a.test/ws\",\"status\":101,\"upgrade\":\"websocket\","
	"\"duration_ns\":600000000}",
	"{\"seq\":3,\"kind\":\"net.ws\",\"wall_ms\":1795961402700,\"flow\":8,\"direction\":\"out\","
	"\"opcode\":1,"
	"\"bytes\":2,\"body\":\"yo\",\"body_encoding\":\"utf8\"}",
	"{\"seq\":4,\"kind\":\"net.ws\",\"wall_ms\":1795961402800,\"flow\":8,\"direction\":\"in\","
	"\"opcode\":2,"
	"\"bytes\":1,\"body\":\"/w==\",\"body_encoding\":\"base64\"}",
	"{\"seq\":5,\"kind\":\"net.ws\",\"wall_ms\":1795961402800,\"flow\":9,\"direction\":\"in\","
	"\"opcode\":1,"
	"\"bytes\":1,\"body\":\"?\",\"body_encoding\":\"utf8\"}",
	"{\"seq\":6,\"kind\":\"net.http\",\"wall_ms\":1795961403000,\"protocol\":\"http/1.1\","
	"\"method\":\"PUT\",\"url\":\"http://a.test/big\",\"body_encoding\":\"utf8\","
	"\"body_truncated\":true,\"body_bytes\":60,\"request_bytes\":50,\"body_blob\":\"there\","
	"\"body_tail_blob\":\"tail\",\"response_body_encoding\":\"utf8\","
	"\"response_body_blob\":\"gone\",\"error\":\"reset \\u001b\"}",
	"{\"seq\":7,\"kind\":\"net.connect\",\"wall_ms\":1,\"address\":\"203.0.113.1\",\"port\":1}",
};

static int blob(void *ctx, struct slice sha256, struct str *out)
{
	if (slice_is(sha256, "tail"))
		str_puts(out, "end");
	else if (slice_is(sha256, "there"))
		str_add(out, "head\xff", 5);
	else
		return slice_is(sha256, "other") ? -EBADMSG : -ENOENT;
	return 0;
}

static json_t *make(const char *sandbox)
{
	scoped(har) struct har *har = har_new(blob, NULL);
	scoped(event_line) struct event_line *line = NULL;
	scoped_str struct str out = {0};
	json_error_t why;
	json_t *root;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		assert_int_equal(event_json_read(slice_of(events[i]), &line, NULL), 0);
		har_add(har, event_json_get(line), sandbox);
	}
	har_json(har, &out);
	root = json_loadb(out.p, out.len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		fail_msg("%s at %d of %s", why.text, why.position, out.p);
	return root;
}

static const json_t *entry(const json_t *root, size_t i)
{
	return json_array_get(json_object_get(json_object_get(root, "log"), "entries"), i);
}

/* The text at a path such as "request/url". */
static const char *text(const json_t *object, const char *path)
{
	char copy[64], *rest = copy, *part;

	snprintf(copy, sizeof(copy), "%s", path);
	while ((part = strsep(&rest, "/")))
		object = part[0] >= '0' && part[0] <= '9'
		                 ? json_array_get(object, (size_t)(part[0] - '0'))
		                 : json_object_get(object, part);
	return json_is_string(object) ? json_string_value(object) : "(none)";
}

static void test_entries(void **state)
{
	json_t *root = make(NULL);
	const json_t *log = json_object_get(root, "log"), *post = entry(root, 1);

	assert_string_equal(text(log, "version"), "1.2");
	assert_string_equal(text(log, "creator/name"), "cloche");
	assert_int_equal(json_array_size(json_object_get(log, "entries")), 3);
	assert_string_equal(text(entry(root, 0), "request/url"), "http://a.test/ws");
	assert_string_equal(text(post, "startedDateTime"), "2026-11-29T14:10:02.250Z");
	assert_true(json_real_value(json_object_get(post, "time")) == 250.0);
	assert_string_equal(text(post, "request/httpVersion"), "HTTP/2.0");
	assert_string_equal(text(post, "request/postData/mimeType"), "application/json");
	assert_string_equal(text(post, "request/postData/text"), "{}");
	assert_string_equal(text(post, "request/queryString/0/value"), "a b");
	assert_string_equal(text(post, "request/queryString/1/name"), "flag");
	assert_string_equal(text(post, "request/queryString/2/value"), "c d");
	assert_string_equal(text(post, "response/redirectURL"), "/there");
	assert_string_equal(text(post, "response/content/encoding"), "base64");
	assert_string_equal(text(post, "response/headers/1/name"), "location");
	assert_string_equal(text(post, "serverIPAddress"), "203.0.113.1");
	assert_string_equal(text(post, "connection"), "7");
	assert_string_equal(text(post, "_secrets/0"), "KEY");
	assert_string_equal(text(post, "_sandbox"), "(none)");
	json_decref(root);
	root = make("sb_x");
	assert_string_equal(text(entry(root, 1), "_sandbox"), "sb_x");
	json_decref(root);
}

static void test_messages(void **state)
{
	json_t *root = make(NULL);
	const json_t *ws = entry(root, 0);

	assert_int_equal(json_array_size(json_object_get(ws, "_webSocketMessages")), 2);
	assert_string_equal(text(ws, "_webSocketMessages/0/type"), "send");
	assert_string_equal(text(ws, "_webSocketMessages/0/data"), "yo");
	assert_string_equal(text(ws, "_webSocketMessages/1/type"), "receive");
	assert_string_equal(text(ws, "_webSocketMessages/1/_encoding"), "base64");
	json_decref(root);
}

static json_int_t number(const json_t *object, const char *outer, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(object, outer), key));
}

static bool flag(const json_t *object, const char *outer, const char *part, const char *key)
{
	return json_is_true(
		json_object_get(json_object_get(json_object_get(object, outer), part), key));
}

/* A body that lies beside is read back, with its end where it was cut; one that is gone says so. */
static void test_blobs(void **state)
{
	json_t *root = make(NULL);
	const json_t *put = entry(root, 2);

	assert_string_equal(text(put, "request/postData/text"), "aGVhZP8=");
	assert_string_equal(text(put, "request/postData/_tail"), "ZW5k");
	assert_string_equal(text(put, "request/postData/_encoding"), "base64");
	assert_true(flag(put, "request", "postData", "_truncated"));
	assert_false(flag(put, "request", "postData", "_gone"));
	assert_string_equal(text(put, "response/content/text"), "(none)");
	assert_true(flag(put, "response", "content", "_gone"));
	assert_int_equal(number(put, "request", "bodySize"), 50);
	assert_int_equal(number(entry(root, 0), "request", "bodySize"), 0);
	assert_string_equal(text(put, "comment"), "reset \x1b");
	json_decref(root);
}

/* A forged record: numbers at their ends, headers that are none. */
static void test_forged(void **state)
{
	static const char *const lines[] = {
		"{\"seq\":1,\"kind\":\"net.http\",\"wall_ms\":-9223372036854775807,\"duration_ns\":"
		"9223372036854775807,\"method\":\"\",\"url\":\"?%\",\"headers\":[1],\"flow\":-1,"
		"\"upgrade\":\"\"}",
		"{\"seq\":2,\"kind\":\"net.http\",\"wall_ms\":9223372036854775807,\"duration_ns\":"
		"-9223372036854775807,\"url\":\"?&&=&%zz&%4\",\"headers\":{\"a\":5,\"content-"
		"type\":[]},"
		"\"response_headers\":7}",
		"{\"seq\":3,\"kind\":\"net.ws\",\"flow\":-1,\"opcode\":-5}",
	};
	scoped(har) struct har *har = har_new(NULL, NULL);
	scoped(event_line) struct event_line *line = NULL;
	scoped_str struct str out = {0};
	json_t *root;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(event_json_read(slice_of(lines[i]), &line, NULL), 0);
		har_add(har, event_json_get(line), NULL);
	}
	har_json(har, &out);
	root = json_loadb(out.p, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_string_equal(text(entry(root, 1), "request/queryString/1/name"), "%zz");
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries),
		cmocka_unit_test(test_messages), cmocka_unit_test(test_blobs),
		cmocka_unit_test(test_forged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
