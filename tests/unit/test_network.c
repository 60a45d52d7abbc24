/* SPDX-License-Identifier: Apache-2.0 */
/* What a user asks about the network: rules, options, JSON, checks, stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"
#include "spec/spec_network_parse.h"
#include "spec/spec_rule.h"
#include "spec/spec_stand_in.h"
#include "spec/spec_within.h"
#include "util/mem.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* "KIND host-or-bits port methods path" of a rule. */
static char *show(const struct spec_rule *rule)
{
	static const char *const kinds[] = {"any", "name", "below", "address"};
	char host[32];

	snprintf(host, sizeof(host), "%u.%u.%u.%u/%u", rule->address[12], rule->address[13],
		rule->address[14], rule->address[15], rule->bits);
	return mem_printf("%s %s %u %s %s", kinds[rule->kind],
		rule->kind == SPEC_RULE_ADDRESS ? host
		: rule->host                    ? rule->host
						: "-",
		rule->port, rule->methods ? rule->methods : "-", rule->path ? rule->path : "-");
}

static void test_rules(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} cases[] = {
		{"example.com", "name example.com 0 - -"},
		{"Example.COM.", "name example.com 0 - -"},
		{"example.com:443", "name example.com 443 - -"},
		{"*.example.com", "below example.com 0 - -"},
		{"*.example.com:8443", "below example.com 8443 - -"},
		{"*", "any - 0 - -"},
		{"*:25", "any - 25 - -"},
		{"_dmarc.my-host.example", "name _dmarc.my-host.example 0 - -"},
		{"localhost", "name localhost 0 - -"},
		{"192.0.2.7", "address 192.0.2.7/128 0 - -"},
		{"10.0.0.0/8", "address 10.0.0.0/104 0 - -"},
		{"10.0.0.0/8:5432", "address 10.0.0.0/104 5432 - -"},
		{"0.0.0.0/0", "address 0.0.0.0/96 0 - -"},
		{"::/0", "address 0.0.0.0/0 0 - -"},
		{"2001:db8::1", "address 0.0.0.1/128 0 - -"},
		{"[2001:db8::1]:443", "address 0.0.0.1/128 443 - -"},
		{"2001:db8::/32", "address 0.0.0.0/32 0 - -"},
		{"[2001:db8::]/32:443", "address 0.0.0.0/32 443 - -"},
		{"::ffff:10.1.2.3", "address 10.1.2.3/128 0 - -"},
		{"GET api.example.com/repos/me/**", "name api.example.com 0 GET /repos/me/**"},
		{"get,head api.example.com:8080/a", "name api.example.com 8080 GET,HEAD /a"},
		{"POST example.com", "name example.com 0 POST -"},
		{"example.com/a/*", "name example.com 0 - /a/*"},
		{"GET 192.0.2.7/24x", "address 192.0.2.7/128 0 GET /24x"},
		{"GET [2001:db8::1]/x", "address 0.0.0.1/128 0 GET /x"},
		{"M-SEARCH example.com", "name example.com 0 M-SEARCH -"},
		{"", NULL},
		{" ", NULL},
		{".", NULL},
		{"a..b", NULL},
		{".example.com", NULL},
		{"example.com:https", NULL},
		{"example.com:0", NULL},
		{"example.com:65536", NULL},
		{"example.com:4 43", NULL},
		{"example.com:", NULL},
		{"example.com:443:443", NULL},
		{"*example.com", NULL},
		{"**.example.com", NULL},
		{"foo.*.example.com", NULL},
		{"*.", NULL},
		{"*.*", NULL},
		{"*.192.0.2.7", NULL},
		{"https://example.com", NULL},
		{"GET https://example.com/", NULL},
		{"user@example.com", NULL},
		{"GET exa mple.com", NULL},
		{"GET  example.com", NULL},
		{"GET, example.com", NULL},
		{",GET example.com", NULL},
		{"G3T example.com", NULL},
		{"GET ", NULL},
		{"10.0.0.1/8", NULL},
		{"10.0.0.0/33", NULL},
		{"10.0.0.0/999999999999", NULL},
		{"2001:db8::/129", NULL},
		{"0x7f.1", NULL},
		{"0177.0.0.1", NULL},
		{"127.1", NULL},
		{"2130706433", NULL},
		{"example.0x10", NULL},
		{"[2001:db8::1", NULL},
		{"[]", NULL},
		{"2001:db8::1]", NULL},
		{"example.com/a?b=c", NULL},
		{"GET", NULL},
		{"GET,HEAD", NULL},
		{"get.example", "name get.example 0 - -"},
		{"example.com/a#b", NULL},
		{"example.com/a%2fb", NULL},
		{"example.com/a\x01", NULL},
		{"ex\xc3\xa4mple.com", NULL},
		{"a.toolonglabeltoolonglabeltoolonglabeltoolonglabeltoolonglabeltoolonglabel.b",
			NULL},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct spec_rule rule;
		struct err err = {0};
		int r = spec_rule_parse(cases[i].text, &rule, &err);
		char *got = r == 0 ? show(&rule) : NULL;

		if (!got != !cases[i].want || (got && strcmp(got, cases[i].want) != 0))
			fail_msg(
				"rule '%s': %s, %s", cases[i].text, got ? got : "refused", err.msg);
		if (got)
			assert_string_equal(rule.text, cases[i].text);
		else
			assert_non_null(strstr(err.msg, "network rule '"));
		if (r == 0)
			spec_rule_done(&rule);
		free(got);
	}
}

/* What an option made of its text, as the JSON of the network says it. */
static void test_options(void **state)
{
	static const struct {
		int (*parse)(const char *text, struct spec_network *net, struct err *err);
		const char *text, *want; /* a part of the JSON; NULL: refused */
	} cases[] = {
		{spec_network_parse_map, "api.test=127.0.0.1:8080", "\"api.test=127.0.0.1:8080\""},
		{spec_network_parse_map, "API.test.:80=::1", "\"api.test:80=::1\""},
		{spec_network_parse_map, "*.test=[::1]:8080", "\"*.test=[::1]:8080\""},
		{spec_network_parse_map, "api.test=localhost", NULL},
		{spec_network_parse_map, "api.test", NULL},
		{spec_network_parse_map, "=127.0.0.1", NULL},
		{spec_network_parse_map, "api.test:x=127.0.0.1", NULL},
		{spec_network_parse_map, "api.test=127.0.0.1:0", NULL},
		{spec_network_parse_resolver, "192.0.2.53", "\"resolver\":[\"192.0.2.53:53\"]"},
		{spec_network_parse_resolver, "2001:db8::1", "\"[2001:db8::1]:53\""},
		{spec_network_parse_resolver, "[2001:db8::1]:5353", "\"[2001:db8::1]:5353\""},
		{spec_network_parse_resolver, "dns.example", NULL},
		{spec_network_parse_resolver, "192.0.2.53:", NULL},
		{spec_network_parse_resolver, "", NULL},
		{spec_network_parse_tls, "passthrough", "\"tls\":[\"passthrough\"]"},
		{spec_network_parse_tls, "*.Pinned.example=passthrough",
			"\"tls\":[\"intercept\",\"*.pinned.example=passthrough\"]"},
		{spec_network_parse_tls, "open", NULL},
		{spec_network_parse_tls, "a.example=intercept", NULL},
		{spec_network_parse_tls, "=passthrough", NULL},
		{spec_network_parse_proxy, "http://proxy.example:3128",
			"\"upstream_proxy\":\"http://proxy.example:3128\""},
		{spec_network_parse_proxy, "http://[2001:db8::1]:3128/",
			"\"http://[2001:db8::1]:3128\""},
		{spec_network_parse_proxy, "http://me:p%40ss@proxy.example:3128",
			"\"upstream_proxy\":\"http://proxy.example:3128\""},
		{spec_network_parse_proxy, "https://proxy.example:3128", NULL},
		{spec_network_parse_proxy, "socks5://proxy.example:1080", NULL},
		{spec_network_parse_proxy, "proxy.example:3128", NULL},
		{spec_network_parse_proxy, "http://proxy.example", NULL},
		{spec_network_parse_proxy, "http://proxy.example:3128/path", NULL},
		{spec_network_parse_proxy, "http://me:sesame%0a@proxy.example:3128", NULL},
		{spec_network_parse_proxy, "http://me:sesame%4@proxy.example:3128", NULL},
		{spec_network_parse_publish, "8080:80", "\"127.0.0.1:8080:80\""},
		{spec_network_parse_publish, "0.0.0.0:8080:80", "\"0.0.0.0:8080:80\""},
		{spec_network_parse_publish, "[::1]:8080:80", "\"[::1]:8080:80\""},
		{spec_network_parse_publish, "8080", NULL},
		{spec_network_parse_publish, "8080:0", NULL},
		{spec_network_parse_publish, "0:80", NULL},
		{spec_network_parse_publish, "8080:80x", NULL},
		{spec_network_parse_publish, "::1:8080:80", NULL},
		{spec_network_parse_publish, "host.example:8080:80", NULL},
		{spec_network_parse_secret, "API_KEY@api.example,*.b.example:8443",
			"{\"name\":\"API_KEY\",\"hosts\":[\"api.example\",\"*.b.example:8443\"],"
			"\"plain\":false}"},
		{spec_network_parse_secret, "API_KEY@api.example,plain=yes", "\"plain\":true"},
		{spec_network_parse_secret, "API_KEY@api.example,pass=m.example,pass=*.n.example",
			"\"plain\":false,\"pass\":[\"m.example\",\"*.n.example\"]"},
		{spec_network_parse_secret, "API_KEY@api.example,pass=", NULL},
		{spec_network_parse_secret, "API_KEY@pass=m.example", NULL},
		{spec_network_parse_secret, "API_KEY", NULL},
		{spec_network_parse_secret, "API_KEY@", NULL},
		{spec_network_parse_secret, "API_KEY@plain=yes", NULL},
		{spec_network_parse_secret, "API_KEY@a.example,plain=maybe", NULL},
		{spec_network_parse_secret, "API_KEY@a.example,,b.example", NULL},
		{spec_network_parse_secret, "sesame-1@a.example", NULL},
		{spec_network_parse_secret, "@a.example", NULL},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct spec_network net;
		struct err err = {0};
		struct str text = {0};
		struct jsonw j = jsonw_to(&text);
		int r;

		spec_network_init(&net);
		r = cases[i].parse(cases[i].text, &net, &err);
		spec_network_write(&j, &net, false);
		if ((r == 0) != (cases[i].want != NULL) ||
			(r == 0 && !strstr(text.p, cases[i].want)))
			fail_msg("'%s': %d, %s in %s", cases[i].text, r, err.msg, text.p);
		assert_null(strstr(text.p, "ss@"));
		assert_null(strstr(err.msg, "sesame"));
		spec_network_done(&net);
		str_done(&text);
	}
}

static const char every_key[] =
	"{\"net\":\"allow\",\"allow\":[\"@mine\",\"b.example:443\"],\"deny\":[\"*.bad.example\"],"
	"\"sets\":{\"@mine\":[\"a.example\",\"GET c.example/x/**\"]},\"shadow\":true,"
	"\"ask\":false,\"resolver\":[\"192.0.2.53:53\"],\"tls\":[\"intercept\","
	"\"*.pinned.example=passthrough\"],\"upstream_ca\":\"-----BEGIN CERTIFICATE-----\\nAA\\n\","
	"\"upstream_proxy\":\"http://proxy.example:3128\",\"control_plane\":true,"
	"\"record_responses\":true,"
	"\"body_limit\":1048576,\"host_map\":[\"d.example=127.0.0.1:8080\"],"
	"\"publish\":[\"127.0.0.1:8080:80\"],\"secrets\":[{\"name\":\"KEY\",\"hosts\":"
	"[\"a.example\"],\"plain\":true,\"stand_in\":\"abcdefgh\"}]}";

static void test_json_keeps_all(void **state)
{
	struct spec_network net;
	struct err err = {0};
	struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	spec_network_init(&net);
	if (spec_network_read(&net, slice_of(every_key), &err) < 0)
		fail_msg("%s", err.msg);
	spec_network_write(&j, &net, false);
	assert_string_equal(text.p, every_key);
	assert_int_equal(spec_network_check(&net, &err), 0);
	/* Reading it again onto itself changes nothing: lists replace. */
	assert_int_equal(spec_network_read(&net, slice_of(every_key), &err), 0);
	str_reset(&text);
	j = jsonw_to(&text);
	spec_network_write(&j, &net, false);
	assert_string_equal(text.p, every_key);
	spec_network_done(&net);
	str_done(&text);
}

static void test_record_holds_nothing_hidden(void **state)
{
	struct spec *spec = spec_new();
	struct spec_network *net = &spec->network, other;
	struct err err = {0};
	struct str text = {0}, hidden = {0};

	assert_int_equal(spec_network_read(net, slice_of(every_key), &err), 0);
	assert_false(spec_hidden_write(&hidden, net));
	assert_int_equal(
		spec_network_parse_proxy("http://me:sesame%21@proxy.example:3128", net, &err), 0);
	net->secrets[0].value = mem_dup("sesame-of-the-key");
	spec_words_add(&spec->env, "SOME=sesame-in-a-variable");
	spec_write_record(&text, spec);
	assert_null(strstr(text.p, "sesame"));
	assert_null(strstr(text.p, "abcdefgh"));
	assert_null(strstr(text.p, "BEGIN"));
	assert_non_null(strstr(text.p, "\"upstream_ca\":\"sha256:"));
	assert_non_null(strstr(text.p, "\"env\":[\"SOME\"]"));
	str_reset(&text);
	spec_write(&text, spec);
	assert_null(strstr(text.p, "sesame-of"));
	assert_null(strstr(text.p, "sesame!"));
	assert_non_null(strstr(text.p, "abcdefgh"));
	assert_true(spec_hidden_write(&hidden, net));
	assert_null(memchr(hidden.p, '\n', hidden.len - 1));

	spec_network_init(&other);
	assert_int_equal(spec_network_read(&other, slice_of(every_key), &err), 0);
	if (spec_hidden_read(&other, str_slice(&hidden), &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(other.secrets[0].value, "sesame-of-the-key");
	assert_string_equal(other.proxy_user, "me");
	assert_string_equal(other.proxy_password, "sesame!");
	assert_int_equal(
		spec_hidden_read(&other,
			slice_of("{\"secrets\":[{\"name\":\"X\",\"value\":\"sesame\"}]}"), &err),
		-EINVAL);
	assert_int_equal(spec_hidden_read(&other, slice_of("sesame"), &err), -EINVAL);
	assert_null(strstr(err.msg, "sesame"));
	spec_network_done(&other);
	spec_free(spec);
	str_done(&text);
	str_done(&hidden);
}

static void expect_proxy(const struct spec_network *net, const char *url, const char *user)
{
	assert_true(url ? net->upstream_proxy && strcmp(net->upstream_proxy, url) == 0
			: !net->upstream_proxy);
	assert_true(
		user ? net->proxy_user && strcmp(net->proxy_user, user) == 0 : !net->proxy_user);
	assert_int_equal(!net->proxy_user, !net->proxy_password);
}

/* Read in this order onto the same network. */
static void test_another_proxy(void **state)
{
	static const struct {
		const char *json;
		int want;
		const char *url, *user; /* then */
	} cases[] = {
		{"{\"url\":\"http://p.example:1\",\"user\":\"me\",\"password\":\"sesame\"}", 0,
			"http://p.example:1", "me"},
		{"{\"url\":\"http://p.example:2\",\"user\":\"me\"}", -EINVAL, "http://p.example:1",
			"me"},
		{"{\"url\":\"https://p.example:2\"}", -EINVAL, "http://p.example:1", "me"},
		{"{}", -EINVAL, "http://p.example:1", "me"},
		{"sesame", -EINVAL, "http://p.example:1", "me"},
		{"\"http://p.example:2\"", -EINVAL, "http://p.example:1", "me"},
		{"{\"url\":\"http://p.example:2\"}", 0, "http://p.example:2", NULL},
		{"{\"url\":\"http://you:sesame@p.example:3\"}", 0, "http://p.example:3", "you"},
		{"null", 0, NULL, NULL},
	};
	struct spec_network net, again;
	struct err err = {0};

	spec_network_init(&net);
	spec_network_init(&again);
	for (size_t i = 0; i < LEN(cases); i++) {
		scoped_str struct str text = {0};

		if (spec_hidden_read_proxy(&net, slice_of(cases[i].json), &err) != cases[i].want)
			fail_msg("case %zu: %s", i, err.msg);
		assert_null(strstr(err.msg, "sesame"));
		expect_proxy(&net, cases[i].url, cases[i].user);
		spec_hidden_write_proxy(&text, &net);
		assert_int_equal(spec_hidden_read_proxy(&again, str_slice(&text), &err), 0);
		expect_proxy(&again, cases[i].url, cases[i].user);
	}
	spec_network_done(&net);
	spec_network_done(&again);
}

/* What was kept for one proxy is not told to another. */
static void test_credentials_of_another_proxy(void **state)
{
	static const char kept[] = "{\"upstream_proxy\":{\"url\":\"http://p.example:1\","
				   "\"user\":\"me\",\"password\":\"sesame\"}}";
	static const char *const urls[] = {"http://p.example:2", "http://p.example:1"};

	for (size_t i = 0; i < LEN(urls); i++) {
		struct spec_network net;
		struct err err = {0};

		spec_network_init(&net);
		assert_int_equal(spec_hidden_read(&net, slice_of(kept), &err), 0);
		expect_proxy(&net, NULL, NULL);
		assert_int_equal(spec_network_parse_proxy(urls[i], &net, &err), 0);
		assert_int_equal(spec_hidden_read(&net, slice_of(kept), &err), 0);
		expect_proxy(&net, urls[i], i == 1 ? "me" : NULL);
		spec_network_done(&net);
	}
}

static void test_check(void **state)
{
	static const struct {
		const char *json, *want; /* NULL: fine; else a part of the sentence */
	} cases[] = {
		{"{}", NULL},
		{"{\"net\":\"none\"}", NULL},
		{"{\"net\":\"open\"}", NULL},
		{"{\"net\":\"closed\"}", "open, allow or none"},
		{"{\"net\":1}", "open, allow or none"},
		{"{\"nett\":\"open\"}", "there is no key 'nett'"},
		{"{\"net\":\"none\",\"allow\":[\"a.example\"]}", "'--allow' needs a network"},
		{"{\"net\":\"none\",\"secrets\":[\"KEY@a.example\"]}", "'--secret' needs"},
		{"{\"allow\":[\"a.example\"]}", NULL},
		{"{\"allow\":[\"a.example:https\"]}", "a port is a number"},
		{"{\"allow\":[\"@mine\"]}", "no set '@mine'"},
		{"{\"allow\":[\"@mine\"],\"sets\":{\"@mine\":[\"x y z\"]}}", "set '@mine'"},
		{"{\"sets\":{\"mine\":[]}}", "under a name such as"},
		{"{\"sets\":{\"@a\\\"b\":[]}}", "under a name such as"},
		{"{\"net\":\"open\",\"ask\":true}", "'--ask'"},
		{"{\"ask\":true}", NULL},
		{"{\"ask\":true,\"shadow\":true}", "exclude each other"},
		{"{\"net\":\"open\",\"body_limit\":\"1G\"}", "body limit"},
		{"{\"net\":\"open\",\"upstream_ca\":\"hello\"}", "no file of certificates"},
		{"{\"net\":\"open\",\"publish\":[\"80:80\",\"80:81\"]}", "published twice"},
		{"{\"net\":\"open\",\"publish\":[\"80:80\",\"0.0.0.0:80:81\"]}", NULL},
		{"{\"net\":\"open\",\"secrets\":[\"KEY@a.example\"]}", NULL},
		{"{\"net\":\"open\",\"deny\":[\"*.example\"],\"secrets\":[\"KEY@a.example\"]}",
			"the rule to deny '*.example' refuses"},
		{"{\"net\":\"open\",\"deny\":[\"POST a.example\"],"
		 "\"secrets\":[\"KEY@a.example\"]}",
			NULL},
		{"{\"net\":\"allow\",\"secrets\":[\"KEY@a.example\"]}",
			"KEY is bound to a.example, which no rule allows"},
		{"{\"allow\":[\"b.example\"],\"secrets\":[\"KEY@a.example\"]}", "no rule allows"},
		{"{\"allow\":[\"*.a.example\"],\"secrets\":[\"KEY@a.example\"]}", "no rule allows"},
		{"{\"allow\":[\"*.example\"],\"secrets\":[\"KEY@a.example\"]}", NULL},
		{"{\"allow\":[\"*.example\"],\"secrets\":[\"KEY@*.example\"]}", NULL},
		{"{\"allow\":[\"*.example\"],\"secrets\":[\"KEY@*.a.example\"]}", NULL},
		{"{\"allow\":[\"*.a.example\"],\"secrets\":[\"KEY@*.example\"]}", "no rule allows"},
		{"{\"allow\":[\"a.example\"],\"secrets\":[\"KEY@*.a.example\"]}", "no rule allows"},
		{"{\"allow\":[\"a.example:443\"],\"secrets\":[\"KEY@a.example\"]}", NULL},
		{"{\"allow\":[\"a.example:443\"],\"secrets\":[\"KEY@a.example:80\"]}",
			"no rule allows"},
		{"{\"allow\":[\"GET a.example/x\"],\"secrets\":[\"KEY@a.example\"]}", NULL},
		{"{\"allow\":[\"192.0.2.0/24\"],\"secrets\":[\"KEY@192.0.2.9:80,plain=yes\"]}",
			NULL},
		{"{\"allow\":[\"@mine\"],\"sets\":{\"@mine\":[\"a.example\"]},"
		 "\"secrets\":[\"KEY@a.example\"]}",
			NULL},
		{"{\"ask\":true,\"secrets\":[\"KEY@a.example\"]}", NULL},
		{"{\"net\":\"open\",\"tls\":\"passthrough\",\"secrets\":[\"KEY@a.example\"]}",
			"passed through unopened"},
		{"{\"net\":\"open\",\"tls\":[\"*.example=passthrough\"],"
		 "\"secrets\":[\"KEY@a.example\"]}",
			"passed through unopened"},
		{"{\"net\":\"open\",\"tls\":[\"b.example=passthrough\"],"
		 "\"secrets\":[\"KEY@a.example\"]}",
			NULL},
		{"{\"control_plane\":true}", NULL},
		{"{\"control_plane\":1}", "true or false"},
		{"{\"net\":\"none\",\"control_plane\":true}", "needs a network"},
		{"{\"net\":\"open\",\"host_map\":[\"Cloche.internal.:80=10.0.0.1\"]}",
			"this name is the control plane's"},
		{"{\"net\":\"open\",\"host_map\":[\"*.internal=10.0.0.1\"]}", NULL},
		{"{\"net\":\"open\",\"secrets\":[\"KEY@cloche.internal\"]}", "does not reach"},
		{"{\"net\":\"allow\",\"control_plane\":true,\"tls\":\"passthrough\","
		 "\"secrets\":[\"KEY@cloche.internal\"]}",
			NULL},
		{"{\"control_plane\":true,\"secrets\":[\"KEY@cloche.internal:80\"]}", NULL},
		{"{\"control_plane\":true,\"secrets\":[\"KEY@cloche.internal:443\"]}",
			"which has 80"},
		{"{\"control_plane\":true,\"deny\":[\"*.internal\"],"
		 "\"secrets\":[\"KEY@cloche.internal\"]}",
			"refuses"},
		{"{\"net\":\"open\",\"secrets\":[\"KEY@*\"]}", "is no host"},
		{"{\"net\":\"open\",\"secrets\":[\"KEY@a.example,pass=*\"]}", "'*' is no host"},
		{"{\"net\":\"open\",\"secrets\":[\"KEY@a.example,pass=b.example\"]}", NULL},
		{"{\"net\":\"open\",\"secrets\":[\"KEY@a.example/x\"]}", "is no host"},
		{"{\"net\":\"open\",\"secrets\":[{\"name\":\"KEY\"}]}", "want name and hosts"},
		{"{\"net\":\"open\",\"secrets\":[{\"name\":\"K Y\",\"hosts\":[\"a\"]}]}",
			"not named like a variable"},
		{"{\"net\":\"open\",\"secrets\":[{\"name\":\"K\",\"hosts\":[\"a\"],"
		 "\"value\":\"v\"}]}",
			"there is no key 'value'"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct spec_network net;
		struct err err = {0};
		int r;

		spec_network_init(&net);
		r = spec_network_read(&net, slice_of(cases[i].json), &err);
		if (r == 0) {
			spec_network_settle(&net);
			r = spec_network_check(&net, &err);
		}
		if ((r < 0) != (cases[i].want != NULL) ||
			(r < 0 && !strstr(err.msg, cases[i].want)))
			fail_msg("%s: %d, %s", cases[i].json, r, err.msg);
		spec_network_done(&net);
	}
}

static void test_stand_in(void **state)
{
	static const struct {
		const char *value, *prefix; /* NULL: refused */
	} cases[] = {
		{"sk-ant-api03-AbC123_xyz-9", "sk-ant-api03-"},
		{"ghp_0123456789abcdef", "ghp_"},
		{"123e4567-e89b-12d3-a456-426614174000", ""},
		{"correct-horse-battery-staple", ""},
		{"p@ssw0rd with spaces", ""},
		{"short12", NULL},
		{"--------------", NULL},
		{"ghp_-------12345", NULL},
		{"line1234\nline5678", NULL},
		{"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", NULL},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		const char *value = cases[i].value, *prefix = cases[i].prefix;
		struct str out = {0}, again = {0};
		struct err err = {0};
		int r = spec_stand_in_make(value, &out, &err);

		if ((r < 0) != !prefix)
			fail_msg("'%s': %d, %s", value, r, err.msg);
		if (r < 0) {
			assert_null(strstr(err.msg, value));
			continue;
		}
		assert_int_equal(out.len, strlen(value));
		assert_int_equal(strncmp(out.p, prefix, strlen(prefix)), 0);
		assert_string_not_equal(out.p, value);
		/* None of its words stays. */
		assert_null(strstr(out.p, "horse"));
		for (size_t k = strlen(prefix); k < out.len; k++)
			assert_int_equal(
				!strchr("0123456789", out.p[k]), !strchr("0123456789", value[k]));
		assert_int_equal(spec_stand_in_make(value, &again, &err), 0);
		assert_string_not_equal(out.p, again.p);
		str_done(&out);
		str_done(&again);
	}
}

/* What an account may not name that may not reach private places. */
static void test_within(void **state)
{
	static const struct {
		const char *json, *want; /* NULL: it may */
	} cases[] = {
		{"{}", NULL},
		{"{\"allow\":[\"a.test\",\"*.b.test:443\",\"*\",\"@github\"]}", NULL},
		{"{\"allow\":[\"a.test\"],\"deny\":[\"10.0.0.1\"]}", NULL},
		{"{\"net\":\"open\",\"deny\":[\"a.test\"]}", NULL},
		{"{\"net\":\"open\",\"allow\":[\"a.test\"]}", "rule 'a.test': beside \"open\""},
		{"{\"allow\":[\"10.0.0.1\"]}", "rule '10.0.0.1': this account"},
		{"{\"allow\":[\"GET [fd00::1]:80/x\"]}", "rule 'GET [fd00::1]:80/x': this account"},
		{"{\"allow\":[\"0.0.0.0/0\"]}", "rule '0.0.0.0/0': this account"},
		{"{\"allow\":[\"@x\"],\"sets\":{\"@x\":[\"a.test\",\"10.0.0.1\"]}}",
			"rule '10.0.0.1': this"},
		{"{\"net\":\"open\",\"allow\":[\"@x\"],\"sets\":{\"@x\":[\"a.test\"]}}",
			"beside \"open\""},
		{"{\"shadow\":true}", "shadow: "},
		{"{\"host_map\":[\"a.test=10.0.0.1\"]}", "host_map: "},
		{"{\"resolver\":[\"10.0.0.1\"]}", "resolver: "},
		{"{\"upstream_ca\":\"x\"}", "upstream_ca: "},
		{"{\"upstream_proxy\":\"http://a.test:1\"}", "upstream_proxy: "},
		{"{\"publish\":[\"8080:80\"]}", "publish: "},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct spec_network net;
		struct err err = {0};
		int r;

		spec_network_init(&net);
		if (spec_network_read(&net, slice_of(cases[i].json), &err) < 0)
			fail_msg("%s: %s", cases[i].json, err.msg);
		spec_network_settle(&net);
		r = spec_within_network(&net, &err);
		if (r != (cases[i].want ? -EPERM : 0) || (r && !strstr(err.msg, cases[i].want)))
			fail_msg("%s: %d %s", cases[i].json, r, err.msg);
		spec_network_done(&net);
	}
}

static void test_variables_of_an_exec(void **state)
{
	struct spec *spec = spec_new();
	struct spec_exec *exec = spec_exec_new();
	struct err err = {0};

	assert_int_equal(spec_network_parse_secret("KEY@a.example", &spec->network, &err), 0);
	spec->network.secrets[0].stand_in = mem_dup("stand-in");
	spec_words_add(&spec->env, "A=sandbox");
	spec_words_add(&spec->env, "B=sandbox");
	spec_words_add(&exec->env, "B=exec");
	spec_words_add(&exec->env, "KEY=sesame");
	spec_words_add(&exec->env, "KEY2=exec");
	spec_exec_inherit(exec, spec);
	assert_int_equal(exec->env.n, 4);
	assert_string_equal(exec->env.items[0], "B=exec");
	assert_string_equal(exec->env.items[1], "KEY=stand-in");
	assert_string_equal(exec->env.items[2], "KEY2=exec");
	assert_string_equal(exec->env.items[3], "A=sandbox");
	spec_exec_free(exec);
	spec_free(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_json_keeps_all),
		cmocka_unit_test(test_record_holds_nothing_hidden),
		cmocka_unit_test(test_another_proxy),
		cmocka_unit_test(test_credentials_of_another_proxy),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_stand_in),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_variables_of_an_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
