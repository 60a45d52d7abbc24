/* SPDX-License-Identifier: Apache-2.0 */
/* What a webhook may lead to, how it is kept, and how it signs. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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

#include "server/webhook.h"
#include "server/webhook_target.h"
#include "util/mem.h"

static const struct {
	const char *url;
	int result, private_result;
} urls[] = {
	{"http://example.org", 0, 0},
	{"https://EXAMPLE.org:8443/a?b=c", 0, 0},
	{"http://93.184.216.34/", 0, 0},
	{"http://[2606:4700::1111]/", 0, 0},
	{"http://localhost/", 0, 0}, /* a name: asked when it is connected to */
	{"http://127.0.0.1/", -EPERM, 0},
	{"http://127.1/", -EPERM, 0},
	{"http://0177.0.0.1/", -EPERM, 0},
	{"http://2130706433/", -EPERM, 0},
	{"http://169.254.169.254/latest/meta-data", -EPERM, 0},
	{"http://[::ffff:127.0.0.1]/", -EPERM, 0},
	{"http://[64:ff9b::7f00:1]/", -EPERM, 0},
	{"http://[fe80::1]/", -EPERM, 0},
	{"http://[::]/", -EPERM, 0},
	{"", -EINVAL, -EINVAL},
	{"//example.org/", -EINVAL, -EINVAL},
	{"gopher://example.org/", -EINVAL, -EINVAL},
	{"file:///etc/passwd", -EINVAL, -EINVAL},
	{"http://a@example.org/", -EINVAL, -EINVAL},
	{"http://a:b@example.org/", -EINVAL, -EINVAL},
	{"http://@example.org/", -EINVAL, -EINVAL},
	{"http://example.org\\@127.0.0.1/", -EINVAL, -EINVAL},
	{"http://example.org/#a", -EINVAL, -EINVAL},
	{"http://example.org/\r\nHost: b", -EINVAL, -EINVAL},
};

static void test_urls(void **state)
{
	struct err err;

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		assert_int_equal(webhook_check_url(urls[i].url, false, &err), urls[i].result);
		assert_int_equal(
			webhook_check_url(urls[i].url, true, &err), urls[i].private_result);
	}
	assert_int_equal(webhook_check_url(NULL, true, &err), -EINVAL);
}

static const char *refuses(int family, const char *text)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(80)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(80)};

	assert_int_equal(
		inet_pton(family, text, family == AF_INET ? (void *)&v4.sin_addr : &v6.sin6_addr),
		1);
	return family == AF_INET ? webhook_target_refuses((const struct sockaddr *)&v4, sizeof(v4))
	                         : webhook_target_refuses((const struct sockaddr *)&v6, sizeof(v6));
}

static void test_addresses(void **state)
{
	assert_null(refuses(AF_INET, "93.184.216.34"));
	assert_null(refuses(AF_INET6, "2606:4700::1111"));
	assert_string_equal(refuses(AF_INET, "127.0.0.53"), "an address of the host itself");
	assert_string_equal(refuses(AF_INET, "10.1.2.3"), "a private address");
	assert_string_equal(refuses(AF_INET, "169.254.169.254"), "an address of metadata services");
	assert_string_equal(refuses(AF_INET, "169.254.1.1"), "a link-local address");
	assert_string_equal(refuses(AF_INET6, "::1"), "an address of the host itself");
	assert_string_equal(refuses(AF_INET6, "::ffff:192.168.0.1"), "a private address");
	assert_non_null(webhook_target_refuses(
		(const struct sockaddr *)&(struct sockaddr_storage){.ss_family = AF_UNIX},
		sizeof(struct sockaddr)));
}

/* The example of the Standard Webhooks specification's libraries. */
static void test_signature(void **state)
{
	char signature[WEBHOOK_SIGN_SIZE];

	assert_int_equal(webhook_sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
				 "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
				 slice_of("{\"test\": 2432232314}"), signature),
		0);
	assert_string_equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
	assert_int_equal(webhook_sign("MfKQ", "a", 1, slice_of("b"), signature), -EINVAL);
	assert_int_equal(webhook_sign("whsec_!", "a", 1, slice_of("b"), signature), -EINVAL);
}

static const struct {
	const char *events;
	bool has_paths;
	int result;
	const char *hears, *not ;
} events[] = {
	{"null", false, 0, "exec.end", "file.changed"},
	{"null", true, 0, "file.changed", "file"},
	{"[\"file.changed\"]", false, 0, "file.changed", "exec.end"},
	{"[\"exec.end\", \"sandbox.error\"]", true, 0, "sandbox.error", "file.changed"},
	{"[]", false, -EINVAL, NULL, NULL},
	{"[\"exec\"]", false, -EINVAL, NULL, NULL},
	{"[null]", false, -EINVAL, NULL, NULL},
};

static void test_what_it_hears(void **state)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		json_t *list = json_loads(events[i].events, JSON_DECODE_ANY, NULL);
		struct webhook webhook = {0};
		struct err err;

		assert_int_equal(
			webhook_read_kinds(list, events[i].has_paths, &webhook.kinds, &err),
			events[i].result);
		if (events[i].hears) {
			assert_true(webhook_hears(&webhook, events[i].hears));
			assert_false(webhook_hears(&webhook, events[i].not ));
		}
		json_decref(list);
	}
}

static void test_it_is_kept(void **state)
{
	struct webhook webhook = {.id = "wh_0123456789abcdef",
		.url = (char *)"http://example.org/\"",
		.sandbox = NULL,
		.kinds = 3,
		.paths = {.items = {(char *)"/a\"/**"}, .n = 1},
		.created_ms = 5};
	scoped(webhook) struct webhook *read = NULL;
	scoped_str struct str json = {0}, told = {0};
	scoped(secret_box) struct secret_box *box = NULL;
	struct store_object object = {.name = webhook.id, .account = "a"};
	char dir[] = "/tmp/test-webhook-XXXXXX", server[64], key[80];
	struct err err;
	char secret[WEBHOOK_SECRET_SIZE] = "", id[WEBHOOK_ID_SIZE], other[WEBHOOK_ID_SIZE];

	webhook_new_secret(secret);
	assert_int_equal(strlen(secret), WEBHOOK_SECRET_SIZE - 1);
	webhook.secret = secret;
	assert_non_null(mkdtemp(dir));
	snprintf(server, sizeof(server), "%s/server", dir);
	snprintf(key, sizeof(key), "%s/secrets.key", server);
	assert_int_equal(mkdir(server, 0700), 0);
	assert_int_equal(secret_box_open(dir, &box, &err), 0);
	assert_int_equal(webhook_write_object(&webhook, "a", box, &json, &err), 0);
	assert_null(strstr(json.p, secret));
	object.json = json.p;
	assert_int_equal(webhook_read_object(&object, box, &read), 0);
	assert_string_equal(read->url, webhook.url);
	assert_string_equal(read->secret, secret);
	assert_null(read->sandbox);
	assert_int_equal(read->kinds, 3);
	assert_int_equal(read->created_ms, 5);
	assert_int_equal(read->paths.n, 1);
	assert_string_equal(read->paths.items[0], "/a\"/**");
	assert_non_null(strstr(json.p, WEBHOOK_PATHS_MARK));
	webhook_write(read, false, &told);
	assert_null(strstr(told.p, secret));
	webhook_delivery_id(read, "sb_a", 7, id);
	webhook_delivery_id(&webhook, "sb_a", 7, other);
	assert_string_equal(id, other);
	webhook_delivery_id(&webhook, "sb_a", 8, other);
	assert_string_not_equal(id, other);
	object.account = "b"; /* sealed for another */
	assert_int_equal(webhook_read_object(&object, box, &read), -EUCLEAN);
	object.account = "a";
	object.json = "{}";
	assert_int_equal(webhook_read_object(&object, box, &read), -EINVAL);
	assert_int_equal(unlink(key), 0);
	assert_int_equal(rmdir(server), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_signature),
		cmocka_unit_test(test_what_it_hears),
		cmocka_unit_test(test_it_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
