/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/url.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define L63      "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-abcdefghi"

static const struct {
	const char *in, *text; /* text NULL: refused */
	enum url_host_kind kind;
} hosts[] = {
	{"example.org", "example.org", URL_NAME},
	{"EXAMPLE.ORG.", "example.org", URL_NAME},
	{"xn--mnchen-3ya.DE", "xn--mnchen-3ya.de", URL_NAME},
	{"_dmarc.a-b.c", "_dmarc.a-b.c", URL_NAME},
	{"localhost", "localhost", URL_NAME},
	{"1e100.net", "1e100.net", URL_NAME},
	{"127.0.0.1.nip.io", "127.0.0.1.nip.io", URL_NAME},
	{"0xg", "0xg", URL_NAME},
	{L63 "." L63 "." L63 "."
	     "a.bcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-abcdef",
		L63 "." L63 "." L63 "."
		    "a.bcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-abcdef",
		URL_NAME},
	{L63 "." L63 "." L63 "."
	     "a.bcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-abcdefh"},
	{L63 "j.org"},
	{""},
	{"."},
	{".."},
	{"a.."},
	{".a"},
	{"a..b"},
	{"a b"},
	{"a%2eb"},
	{"%31.2.3.4"},
	{"a/b"},
	{"a\\b"},
	{"a@b"},
	{"a:b"},
	{"a*"},
	{"\xc3\xbc.de"},
	{"a\xe3\x80\x82"
	 "b"},
	{"a\tb"},
	{"127.0.0.1", "127.0.0.1", URL_IPV4},
	{"127.0.0.1.", "127.0.0.1", URL_IPV4},
	{"127.1", "127.0.0.1", URL_IPV4},
	{"127.0.1", "127.0.0.1", URL_IPV4},
	{"2130706433", "127.0.0.1", URL_IPV4},
	{"0x7f.1", "127.0.0.1", URL_IPV4},
	{"0X7F000001", "127.0.0.1", URL_IPV4},
	{"0177.0.0.1", "127.0.0.1", URL_IPV4},
	{"017700000001", "127.0.0.1", URL_IPV4},
	{"3405803785", "203.0.113.9", URL_IPV4},
	{"0xcb.0.0x71.9", "203.0.113.9", URL_IPV4},
	{"0313.0.0161.011", "203.0.113.9", URL_IPV4},
	{"0", "0.0.0.0", URL_IPV4},
	{"0x", "0.0.0.0", URL_IPV4},
	{"0x.0x.0", "0.0.0.0", URL_IPV4},
	{"1.2.65535", "1.2.255.255", URL_IPV4},
	{"1.16777215", "1.255.255.255", URL_IPV4},
	{"4294967295", "255.255.255.255", URL_IPV4},
	{"000000000000000000000000000000000000177.1", "127.0.0.1", URL_IPV4},
	{"4294967296"},
	{"18446744073709551617"},
	{"99999999999999999999999999999999999999"},
	{"1.2.3.256"},
	{"1.2.65536"},
	{"1.16777216"},
	{"256.1.1.1"},
	{"1.2.3.4.5"},
	{"1..2"},
	{"a.1"},
	{"a.0x1"},
	{"1.2.3.08"},
	{"08"},
	{"1.2.3.4.."},
	{"[::1]", "::1", URL_IPV6},
	{"[2001:DB8:0:0:0:0:0:1]", "2001:db8::1", URL_IPV6},
	{"[::ffff:203.0.113.9]", "::ffff:203.0.113.9", URL_IPV6},
	{"[::ffff:cb00:7109]", "::ffff:203.0.113.9", URL_IPV6},
	{"::1"},
	{"[::1"},
	{"::1]"},
	{"[]"},
	{"[::1%lo]"},
	{"[::1%25lo]"},
	{"[127.0.0.1]"},
	{"[v1.x]"},
	{"[::1]]"},
	{"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"},
};

static void test_host(void **state)
{
	struct url_host host;

	for (size_t i = 0; i < N(hosts); i++) {
		int r = url_host_read(slice_of(hosts[i].in), &host);

		if (r != (hosts[i].text ? 0 : -EINVAL))
			fail_msg("'%s': %d '%s'", hosts[i].in, r, r ? "" : host.text);
		if (r < 0)
			continue;
		assert_string_equal(host.text, hosts[i].text);
		assert_int_equal(host.kind, hosts[i].kind);
	}
	assert_int_equal(url_host_read((struct slice){.p = "a\0b", .len = 3}, &host), -EINVAL);
	assert_int_equal(url_host_read((struct slice){.p = "[::1\0]", .len = 6}, &host), -EINVAL);
	assert_int_equal(url_host_read((struct slice){0}, &host), -EINVAL);
}

static void test_address(void **state)
{
	static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 203, 0, 113, 9};
	struct url_host host;

	assert_int_equal(url_host_read(slice_of("0xcb.0.0x71.9"), &host), 0);
	assert_memory_equal(host.address, mapped, 16);
	assert_int_equal(url_host_read(slice_of("[::ffff:203.0.113.9]"), &host), 0);
	assert_memory_equal(host.address, mapped, 16);
}

static const struct {
	const char *in, *user, *host; /* host NULL: refused */
	unsigned port;
} authorities[] = {
	{"a.b", NULL, "a.b", 0},
	{"a.b:80", NULL, "a.b", 80},
	{"A.b.:65535", NULL, "a.b", 65535},
	{"[::1]:8080", NULL, "::1", 8080},
	{"[::1]", NULL, "::1", 0},
	{"u:p@a.b:1", "u:p", "a.b", 1},
	{"@a.b", "", "a.b", 0},
	{"127.1:00080", NULL, "127.0.0.1", 80},
	{"a.b:"},
	{"a.b:0"},
	{"a.b:65536"},
	{"a.b:000080"},
	{"a.b:+80"},
	{"a.b: 80"},
	{"a.b:80:80"},
	{"a.b:80a"},
	{":80"},
	{"@"},
	{"u@a.b@c.d"},
	{"[::1]80"},
	{"[::1]a:80"},
	{"[::1"},
	{"::1"},
	{"a.b/"},
	{""},
};

static void test_authority(void **state)
{
	struct url_authority authority;

	for (size_t i = 0; i < N(authorities); i++) {
		int r = url_authority_read(slice_of(authorities[i].in), &authority);

		if (r != (authorities[i].host ? 0 : -EINVAL))
			fail_msg("'%s': %d", authorities[i].in, r);
		if (r < 0)
			continue;
		assert_string_equal(authority.host.text, authorities[i].host);
		assert_int_equal(authority.port, authorities[i].port);
		assert_int_equal(!authority.user.p, !authorities[i].user);
		assert_true(!authority.user.p || slice_is(authority.user, authorities[i].user));
	}
}

static const struct {
	const char *in, *scheme, *host, *path; /* scheme NULL: refused */
	unsigned port;
} urls[] = {
	{"http://a.b", "http", "a.b", "", 0},
	{"HTTPS://A.b:8443/x?y=http://c.d/", "https", "a.b", "/x?y=http://c.d/", 8443},
	{"http://a.b?q/@c", "http", "a.b", "?q/@c", 0},
	{"wss://[::1]/", "wss", "::1", "/", 0},
	{"http://a.b@c.d/", "http", "c.d", "/", 0},
	{"http://a.b/@c.d", "http", "a.b", "/@c.d", 0},
	{"http://3405803785/", "http", "203.0.113.9", "/", 0},
	{"http://a.b/\xc3\xbc", "http", "a.b", "/\xc3\xbc", 0},
	{"http://a.b\\@c.d/"},
	{"http://a.b#@c.d/"},
	{"http://a.b/#x"},
	{"http://a.b/ x"},
	{"http://a.b/\tx"},
	{"http://a.b/x\r\n"},
	{"http:/a.b/"},
	{"http:a.b"},
	{"//a.b/"},
	{"://a.b/"},
	{"http:///a"},
	{"http://"},
	{"/a"},
	{"a.b:80"},
	{"ht tp://a.b/"},
	{"h2://a.b/"},
	{"averyverylongscheme://a.b/"},
	{""},
};

static void test_url(void **state)
{
	struct url url;

	for (size_t i = 0; i < N(urls); i++) {
		int r = url_read(slice_of(urls[i].in), &url);

		if (r != (urls[i].scheme ? 0 : -EINVAL))
			fail_msg("'%s': %d", urls[i].in, r);
		if (r < 0)
			continue;
		assert_string_equal(url.scheme, urls[i].scheme);
		assert_string_equal(url.authority.host.text, urls[i].host);
		assert_int_equal(url.authority.port, urls[i].port);
		assert_true(slice_is(url.path, urls[i].path));
	}
}

static void test_add(void **state)
{
	static const struct {
		const char *scheme, *host;
		uint16_t port;
		const char *path, *want;
	} cases[] = {
		{"http", "a.b", 80, "/x", "http://a.b/x"},
		{"https", "a.b", 80, "/x", "https://a.b:80/x"},
		{"https", "::1", 443, "", "https://[::1]"},
		{"wss", "::1", 1, "/", "wss://[::1]:1/"},
		{"http", "a.b", 0, "/", "http://a.b/"},
	};

	for (size_t i = 0; i < N(cases); i++) {
		scoped_str struct str out = {0};

		url_add(&out, cases[i].scheme, cases[i].host, cases[i].port,
			slice_of(cases[i].path));
		assert_string_equal(out.p, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_address),
		cmocka_unit_test(test_authority),
		cmocka_unit_test(test_url),
		cmocka_unit_test(test_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
