/* SPDX-License-Identifier: Apache-2.0 */
/* What is let through and what is not. Rows are chosen to break it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/policy.h"
#include "gateway/policy_path.h"
#include "proto/address_range.h"
#include "spec/spec_rule.h"
#include "util/str.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static struct policy *policy_of(const char *json)
{
	struct spec_network net;
	struct policy *policy = NULL;
	struct err err = {0};

	spec_network_init(&net);
	if (spec_network_read(&net, slice_of(json), &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	spec_network_settle(&net);
	if (policy_new(&net, &policy, &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	spec_network_done(&net); /* it keeps nothing of it */
	return policy;
}

/* target: "HOST", "HOST ADDRESS PORT", "- ADDRESS PORT", then "udp" or "METHOD PATH". */
static struct policy_answer ask(const struct policy *policy, const char *target)
{
	char host[256] = "", address[64] = "", word[32] = "", path[512] = "";
	unsigned port = 0;
	struct policy_query q = {.protocol = "tcp"};
	struct policy_answer a;

	sscanf(target, "%255s %63s %u %31s %511s", host, address, &port, word, path);
	q.host = strcmp(host, "-") == 0 ? NULL : host;
	q.port = (uint16_t)port;
	if (*address && strcmp(address, "-") != 0) {
		q.has_address = true;
		assert_int_equal(spec_rule_address(slice_of(address), q.address), 0);
	}
	if (strcmp(word, "udp") == 0)
		q.protocol = "udp";
	else if (*word) {
		q.method = word;
		q.path = path;
	}
	policy_check(policy, &q, &a);
	return a;
}

#define A POLICY_ALLOW
#define D POLICY_DENY

static const char open_mode[] = "{\"net\":\"open\"}";
static const char wild[] = "{\"allow\":[\"*.packages.example.org:443\"]}";
static const char listed[] = "{\"allow\":[\"a.example\",\"198.51.100.0/24:22\",\"10.1.0.0/16\","
			     "\"[2001:db8:1::]/48\"]}";
static const char paths[] = "{\"allow\":[\"GET,HEAD api.example/repos/me/**\","
			    "\"POST api.example/graphql\",\"c.example/x/*/y\"]}";
static const char denied[] = "{\"net\":\"open\",\"allow\":[\"a.bad.example\"],\"deny\":"
			     "[\"*.bad.example\",\"*:25\",\"203.0.113.0/24\",\"POST *\","
			     "\"d.example/admin/**\"]}";
static const char private_name[] =
	"{\"net\":\"open\",\"allow\":[\"db.corp.example\",\"10.9.9.9\",\"*\"]}";
static const char mapped[] = "{\"allow\":[\"api.test\",\"*.in.test\"],\"host_map\":"
			     "[\"api.test:443=127.0.0.1:8443\",\"*.in.test=10.0.0.7\","
			     "\"x.in.test=10.0.0.8\"]}";
static const char plane[] = "{\"net\":\"allow\",\"control_plane\":true,\"deny\":"
			    "[\"cloche.internal/v1/log\",\"DELETE *\"]}";
static const char no_plane[] = "{\"allow\":[\"*\",\"cloche.internal\",\"*.internal\"],"
			       "\"host_map\":[\"*.internal=10.0.0.1\"]}";
static const char forms[] = "{\"net\":\"open\",\"allow\":[\"64:ff9b::/96\",\"2002::/16\"],"
			    "\"deny\":[\"198.51.100.7\"]}";

static void test_verdicts(void **state)
{
	static const struct {
		const char *json, *target;
		enum policy_verdict want;
		const char *rule; /* a part of it */
	} cases[] = {
		/* Names, wildcards and ports. */
		{wild, "files.packages.example.org", A, "allow *.packages.example.org:443"},
		{wild, "files.packages.example.org 198.51.100.1 443", A, "allow"},
		{wild, "a.b.packages.example.org 198.51.100.1 443", A, "allow"},
		{wild, "packages.example.org", D, "not in the allow list"},
		{wild, "notpackages.example.org", D, "not in the allow list"},
		{wild, "xpackages.example.org 198.51.100.1 443", D, "not in"},
		{wild, "packages.example.org.evil.example 198.51.100.1 443", D, "not in"},
		{wild, "files.packages.example.org 198.51.100.1 80", D, "not in"},
		{wild, "files.packages.example.org 198.51.100.1 4430", D, "not in"},
		{wild, "- 198.51.100.1 443", D, "not in"},
		{wild, "files.packages.example.org 10.0.0.1 443", D, "private"},
		{wild, "files.packages.example.org 127.0.0.1 443", D, "host itself"},
		{wild, "files.packages.example.org 169.254.169.254 443", D, "metadata"},
		/* Raw addresses only where a rule names them. */
		{listed, "- 198.51.100.9 22", A, "allow 198.51.100.0/24:22"},
		{listed, "- 198.51.100.9 23", D, "not in"},
		{listed, "- 198.51.101.9 22", D, "not in"},
		{listed, "a.example 203.0.113.9 22", A, "allow a.example"},
		{listed, "b.example 203.0.113.9 22", D, "not in"},
		{listed, "b.example", D, "not in"},
		{listed, "- 10.1.2.3 5432", A, "allow 10.1.0.0/16"},
		{listed, "a.example 10.1.2.3 5432", A, "allow 10.1.0.0/16"},
		{listed, "a.example 10.2.2.3 5432", D, "private"},
		{listed, "- 2001:db8:1::5 80", A, "allow [2001:db8:1::]/48"},
		{listed, "- 2001:db8:2::5 80", D, "not in"},
		{listed, "- ::ffff:10.1.2.3 80", A, "allow 10.1.0.0/16"},
		{listed, "- ::ffff:10.2.2.3 80", D, "private"},
		{"{\"allow\":[\"0.0.0.0/0\"]}", "- 127.0.0.1 80", A, "allow 0.0.0.0/0"},
		{"{\"allow\":[\"0.0.0.0/0\"]}", "- 2001:db8::1 80", D, "not in"},
		{"{\"allow\":[\"*\"]}", "- 198.51.100.1 80", A, "allow *"},
		{"{\"allow\":[\"*\"]}", "x.example 10.0.0.1 80", D, "private"},
		{"{\"allow\":[\"*:443\"]}", "x.example 198.51.100.1 80", D, "not in"},
		{"{\"net\":\"allow\"}", "x.example", D, "not in"},
		{"{\"net\":\"none\"}", "x.example", D, "no network"},
		/* Open: anything public. */
		{open_mode, "x.example", A, "default: open"},
		{open_mode, "x.example 198.51.100.1 25", A, "default: open"},
		{open_mode, "- 2606:4700::1 443", A, "default: open"},
		{open_mode, "localhost.x.example 127.0.0.1 80", D, "host itself"},
		{open_mode, "- 127.8.8.8 80", D, "host itself"},
		{open_mode, "- 0.0.0.0 80", D, "host itself"},
		{open_mode, "- 10.255.255.255 80", D, "private"},
		{open_mode, "- 172.15.255.255 80", A, ""},
		{open_mode, "- 172.16.0.0 80", D, "private"},
		{open_mode, "- 172.31.255.255 80", D, "private"},
		{open_mode, "- 172.32.0.0 80", A, ""},
		{open_mode, "- 192.168.1.1 80", D, "private"},
		{open_mode, "- 192.169.1.1 80", A, ""},
		{open_mode, "- 100.63.255.255 80", A, ""},
		{open_mode, "- 100.64.0.0 80", D, "provider"},
		{open_mode, "- 100.127.255.255 80", D, "provider"},
		{open_mode, "- 100.128.0.0 80", A, ""},
		{open_mode, "- 100.100.100.200 80", D, "metadata"},
		{open_mode, "- 168.63.129.16 80", D, "metadata"},
		{open_mode, "- 169.254.1.1 80", D, "link-local"},
		{open_mode, "- 169.254.170.2 80", D, "metadata"},
		{open_mode, "- 198.17.255.255 80", A, ""},
		{open_mode, "- 198.18.0.1 80", D, "reserved"},
		{open_mode, "- 198.19.255.255 80", D, "reserved"},
		{open_mode, "- 198.20.0.0 80", A, ""},
		{open_mode, "- 224.0.0.251 5353 udp", D, "multicast"},
		{open_mode, "- 255.255.255.255 67 udp", D, "reserved"},
		{open_mode, "- :: 80", D, "host itself"},
		{open_mode, "- ::1 80", D, "host itself"},
		{open_mode, "- ::2 80", D, "reserved"},
		{open_mode, "- ::10.0.0.1 80", D, "carries an IPv4"},
		{open_mode, "- ::ffff:127.0.0.1 80", D, "host itself"},
		{open_mode, "- ::ffff:0:127.0.0.1 80", D, "carries an IPv4"},
		{open_mode, "- fe80::1 80", D, "link-local"},
		{open_mode, "- fec0::1 80", D, "private"},
		{open_mode, "- fc00::1 80", D, "private"},
		{open_mode, "- fdff::1 80", D, "private"},
		{open_mode, "- fd00:ec2::254 80", D, "metadata"},
		{open_mode, "- fd00:c1::5 80", D, "reserved"},
		{open_mode, "- ff02::1 80", D, "multicast"},
		{open_mode, "- 64:ff9b::7f00:1 80", D, "carries an IPv4"},
		{open_mode, "- 64:ff9b:1::1 80", D, "carries an IPv4"},
		{open_mode, "- 2002:7f00:1::1 80", D, "carries an IPv4"},
		{open_mode, "- 2001:0:5ef5:79fd::1 80", D, "carries an IPv4"},
		{open_mode, "- 2001:4860:4860::8888 80", A, ""},
		/* The control plane's name leads to no address, by no rule, and to one port. */
		{plane, "cloche.internal", A, "control_plane"},
		{plane, "cloche.internal - 80", A, "control_plane"},
		{plane, "cloche.internal - 80 GET /v1/sandboxes", A, "control_plane"},
		{plane, "cloche.internal - 80 GET /v1/log", D, "deny cloche.internal/v1/log"},
		{plane, "cloche.internal - 80 GET /v1/x/../log", D, "deny cloche.internal/v1/log"},
		{plane, "cloche.internal - 80 DELETE /v1/sandboxes/x", D, "deny DELETE *"},
		{plane, "cloche.internal - 443", D, "default: control plane"},
		{plane, "cloche.internal - 80 udp", D, "default: control plane"},
		{plane, "cloche.internal 198.51.100.1 80", D, "default: control plane"},
		{plane, "cloche.internal 127.0.0.1 80", D, "default: control plane"},
		{plane, "x.cloche.internal", D, "not in"},
		{no_plane, "cloche.internal", D, "default: no control plane"},
		{no_plane, "cloche.internal - 80", D, "default: no control plane"},
		{no_plane, "cloche.internal 10.0.0.1 80", D, "default: no control plane"},
		{"{\"net\":\"open\",\"shadow\":true}", "cloche.internal - 80", D,
			"no control plane"},
		{"{\"net\":\"open\",\"shadow\":true,\"control_plane\":true}",
			"cloche.internal - 53 udp", D, "default: control plane"},
		{"{\"ask\":true}", "cloche.internal - 80", D, "no control plane"},
		/* What an IPv6 form carries is judged too, even where the form is allowed. */
		{forms, "- 64:ff9b::c633:6401 80", A, "allow 64:ff9b::/96"},
		{forms, "- 64:ff9b::7f00:1 80", D, "host itself"},
		{forms, "- 64:ff9b::a9fe:a9fe 80", D, "metadata"},
		{forms, "- 64:ff9b::c633:6407 80", D, "deny 198.51.100.7"},
		{forms, "- 2002:a00:1::1 80", D, "private"},
		{forms, "- 2002:c633:6407::1 80", D, "deny 198.51.100.7"},
		/* A private place is opened by its name with open, and by its address always. */
		{private_name, "db.corp.example 10.2.3.4 5432", A, "allow db.corp.example"},
		{private_name, "other.corp.example 10.2.3.4 5432", D, "private"},
		{private_name, "db.corp.example 127.0.0.1 5432", D, "host itself"},
		{private_name, "db.corp.example 169.254.169.254 80", D, "metadata"},
		{private_name, "- 10.9.9.9 80", A, "allow 10.9.9.9"},
		{private_name, "other.example 10.9.9.9 80", A, "allow 10.9.9.9"},
		/* Deny wins, however narrow the other. */
		{denied, "a.bad.example", D, "deny *.bad.example"},
		{denied, "a.bad.example 198.51.100.1 443", D, "deny *.bad.example"},
		{denied, "bad.example", A, ""},
		{denied, "x.example 198.51.100.1 25", D, "deny *:25"},
		{denied, "- 198.51.100.1 25", D, "deny *:25"},
		{denied, "x.example", A, ""},
		{denied, "x.example 203.0.113.7 443", D, "deny 203.0.113.0/24"},
		{denied, "x.example 198.51.100.1 443 GET /", A, ""},
		{denied, "x.example 198.51.100.1 443 POST /", D, "deny POST *"},
		{denied, "x.example 198.51.100.1 443 post /", D, "deny POST *"},
		{denied, "x.example 198.51.100.1 443 POSTS /", A, ""},
		{denied, "d.example 198.51.100.1 443 GET /admin/x", D, "deny d.example/admin/**"},
		{denied, "d.example 198.51.100.1 443 GET /admin", A, ""},
		{denied, "d.example 198.51.100.1 443 GET /public", A, ""},
		{denied, "d.example 198.51.100.1 443 GET /x/../admin/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /%61dmin/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET //admin/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /admin%2fx", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /ADMIN/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /admin;a=b/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /Admin%3ba/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /;a/admin/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /%c0%afadmin/x", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET /b;admin/x", A, ""},
		{denied, "d.example 198.51.100.1 443 GET /%c3%a9/x", A, ""},
		{denied, "d.example 198.51.100.1 443 GET /x\\..\\admin", D, "deny d.example"},
		{denied, "d.example 198.51.100.1 443 GET *", D, "deny d.example"},
		{denied, "x.example 198.51.100.1 443 GET /a/../b", A, ""},
		{denied, "x.example 198.51.100.1 443 udp", D, ""},
		/* Methods and paths. */
		{paths, "api.example", A, "allow"},
		{paths, "api.example 198.51.100.1 443", A, "allow"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/x", A, "allow GET,HEAD"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/x/y?z=../..", A, "allow"},
		{paths, "api.example 198.51.100.1 443 HEAD /repos/me/", A, "allow"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/mean", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/you/x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 get /repos/me/x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GE /repos/me/x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET,HEAD /repos/me/x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 POST /repos/me/x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 POST /graphql", A, "allow POST"},
		{paths, "api.example 198.51.100.1 443 POST /graphql?x", A, "allow POST"},
		{paths, "api.example 198.51.100.1 443 POST /graphql/", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/../you/x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/%2e%2e/you", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/.%2e/you", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/..;/you", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/..%2fyou", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/%252e%252e/you", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me//x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET //repos/me/x", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/%zz", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/%", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/%00", D, "not in"},
		{paths, "api.example 198.51.100.1 443 GET /repos/m%65/x", A, "allow"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/...", A, "allow"},
		{paths, "api.example 198.51.100.1 443 GET http://api.example/repos/me/x", D, "not"},
		{paths, "c.example 198.51.100.1 80 PUT /x/1/y", A, "allow c.example"},
		{paths, "c.example 198.51.100.1 80 PUT /x/1/2/y", D, "not in"},
		{paths, "api.example 198.51.100.1 443 udp", D, ""},
		{"{\"allow\":[\"GET a.example/**\"]}", "a.example 198.51.100.1 80 GET /x/../y", A,
			"allow"},
		{"{\"allow\":[\"a.example\"]}", "a.example 198.51.100.1 80 GET /x/../y", A, ""},
		/* Sets say where a rule is from. */
		{"{\"allow\":[\"@mine\"],\"sets\":{\"@mine\":[\"a.example\"]}}", "a.example", A,
			"allow @mine (a.example)"},
		/* Mapped names lead where the user said, and nowhere else. */
		{mapped, "api.test 127.0.0.1 443", A, "allow api.test"},
		{mapped, "api.test 127.0.0.1 80", D, "host itself"},
		{mapped, "api.test 127.0.0.2 443", D, "host itself"},
		{mapped, "y.in.test 10.0.0.7 80", A, "allow"},
		{mapped, "x.in.test 10.0.0.8 80", A, "allow"},
		{mapped, "x.in.test 10.0.0.7 80", D, "private"},
		{mapped, "in.test 10.0.0.7 80", D, ""},
		{mapped, "- 10.0.0.7 80", D, "private"},
		/* A question to a person is asked about unknown places only. */
		{"{\"ask\":true,\"allow\":[\"a.example\"]}", "b.example", POLICY_ASK, "not in"},
		{"{\"ask\":true}", "b.example 198.51.100.1 443", POLICY_ASK, "not in"},
		{"{\"ask\":true}", "b.example 10.0.0.1 443", D, "private"},
		{"{\"ask\":true,\"deny\":[\"b.example\"]}", "b.example", D, "deny b.example"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct policy *policy = policy_of(cases[i].json);
		struct policy_answer a = ask(policy, cases[i].target);

		if (a.verdict != cases[i].want || !strstr(a.rule, cases[i].rule))
			fail_msg("%s of %s: %d, rule '%s', %s", cases[i].target, cases[i].json,
				a.verdict, a.rule, a.reason);
		assert_int_equal(!*a.reason, a.verdict == POLICY_ALLOW);
		policy_free(policy);
	}
}

static void test_only_http(void **state)
{
	static const struct {
		const char *json, *target;
		bool want;
	} cases[] = {
		{paths, "api.example 198.51.100.1 443", true},
		{paths, "api.example", false},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/x", false},
		{listed, "a.example 198.51.100.1 443", false},
		{denied, "x.example 198.51.100.1 22", true},
		{open_mode, "x.example 198.51.100.1 22", false},
		{"{\"net\":\"open\",\"deny\":[\"POST a.example\"]}", "b.example 198.51.100.1 22",
			false},
		{"{\"net\":\"open\",\"deny\":[\"POST a.example:443\"]}",
			"a.example 198.51.100.1 22", false},
		{"{\"allow\":[\"a.example\",\"GET a.example/x\"]}", "a.example 198.51.100.1 443",
			false},
		{"{\"net\":\"open\",\"allow\":[\"GET a.example/x\"]}", "a.example 198.51.100.1 443",
			false},
		{"{\"allow\":[\"GET a.example/x\"],\"shadow\":true}", "a.example 198.51.100.1 443",
			false},
		{plane, "cloche.internal", false},
		{plane, "cloche.internal - 80", true},
		{"{\"net\":\"open\",\"control_plane\":true,\"shadow\":true,"
		 "\"deny\":[\"cloche.internal\"]}",
			"cloche.internal - 80", true},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct policy *policy = policy_of(cases[i].json);
		struct policy_answer a = ask(policy, cases[i].target);

		if (a.verdict != POLICY_ALLOW || a.only_http != cases[i].want)
			fail_msg("%s of %s: %d, %d", cases[i].target, cases[i].json, a.verdict,
				a.only_http);
		policy_free(policy);
	}
}

static void test_wants_http(void **state)
{
	struct policy *policy = policy_of(paths);

	assert_true(policy_wants_http(policy, "api.example", 443));
	assert_true(policy_wants_http(policy, "c.example", 8080));
	assert_false(policy_wants_http(policy, "b.example", 443));
	assert_false(policy_wants_http(policy, NULL, 443));
	policy_free(policy);
	policy = policy_of("{\"allow\":[\"a.example\",\"GET b.example:80/x\",\"GET 10.0.0.1/\"]}");
	assert_true(policy_wants_http(policy, "b.example", 80));
	/* The address is not known here: it may be that one. */
	assert_true(policy_wants_http(policy, NULL, 80));
	policy_free(policy);
}

static void test_shadow(void **state)
{
	struct policy *policy = policy_of("{\"allow\":[\"a.example\"],\"deny\":[\"b.example\"],"
					  "\"shadow\":true}");
	struct policy_answer a = ask(policy, "c.example 198.51.100.1 443");

	assert_int_equal(a.verdict, POLICY_ALLOW);
	assert_true(a.shadow);
	assert_string_equal(a.rule, "default: not in the allow list");
	assert_non_null(strstr(a.reason, "'--allow c.example:443'"));
	a = ask(policy, "b.example");
	assert_true(a.shadow);
	assert_string_equal(a.rule, "deny b.example");
	a = ask(policy, "c.example 10.0.0.1 443");
	assert_true(a.shadow);
	a = ask(policy, "a.example");
	assert_false(a.shadow);
	/* The host's own doors stay shut. */
	assert_int_equal(ask(policy, "a.example 127.0.0.1 80").verdict, POLICY_DENY);
	assert_int_equal(ask(policy, "- 169.254.169.254 80").verdict, POLICY_DENY);
	policy_free(policy);
}

static void test_own_addresses(void **state)
{
	struct policy *policy = policy_of("{\"allow\":[\"*\",\"198.51.100.8\"]}");
	struct policy_query query = {
		.host = "a.example", .port = 80, .protocol = "tcp", .has_address = true};
	struct policy_answer a;

	assert_int_equal(spec_rule_address(slice_of("198.51.100.7"), query.address), 0);
	policy_check(policy, &query, &a);
	assert_int_equal(a.verdict, POLICY_ALLOW);
	query.is_own = true;
	policy_check(policy, &query, &a);
	assert_int_equal(a.verdict, POLICY_DENY);
	assert_non_null(strstr(a.rule, "host itself"));
	/* A rule may name it. */
	assert_int_equal(spec_rule_address(slice_of("198.51.100.8"), query.address), 0);
	policy_check(policy, &query, &a);
	assert_int_equal(a.verdict, POLICY_ALLOW);
	policy_free(policy);
}

/* What a proxy may look up anew: a name that a rule names, not one whose address does, nor one of all. */
static void test_named(void **state)
{
	static const struct {
		const char *json, *target;
		bool is_named;
	} rows[] = {
		{listed, "a.example 192.0.2.1 443", true},
		{wild, "x.packages.example.org 192.0.2.1 443", true},
		{paths, "api.example 192.0.2.1 443", true},
		{listed, "b.example 10.1.2.3 443", false},
		{"{\"allow\":[\"*\"]}", "a.example 192.0.2.1 443", false},
		{"{\"allow\":[\"*\",\"a.example\"]}", "a.example 192.0.2.1 443", true},
		{open_mode, "a.example 192.0.2.1 443", false},
		{"{\"net\":\"open\",\"allow\":[\"10.0.0.0/8\"]}", "a.example 10.0.0.1 80", false},
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		scoped(policy) struct policy *policy = policy_of(rows[i].json);
		struct policy_answer a = ask(policy, rows[i].target);

		assert_int_equal(a.verdict, A);
		if (a.is_named != rows[i].is_named)
			fail_msg("%s: %s", rows[i].json, rows[i].target);
	}
}

static void test_reasons(void **state)
{
	static const struct {
		const char *json, *target, *want;
	} cases[] = {
		{wild, "evil.example 198.51.100.1 443",
			"evil.example port 443 is not in this sandbox's allow list; trying again "
			"will not help: do without it, or ask whoever runs this sandbox for "
			"'--allow evil.example:443'"},
		{wild, "- 2001:db8::1 443", "'--allow [2001:db8::1]:443'"},
		{wild, "evil.example", "for '--allow evil.example'"},
		{open_mode, "x.example 10.0.0.5 80",
			"x.example port 80 leads to 10.0.0.5, a private address, which sandboxes "
			"do not reach"},
		{open_mode, "x.example 10.0.0.5 80", "'--allow 10.0.0.5:80'"},
		{denied, "a.bad.example", "refused by a rule of this sandbox (deny *.bad.example)"},
		{paths, "api.example 198.51.100.1 443 DELETE /repos/me/x",
			"DELETE /repos/me/x on api.example port 443 is not in this sandbox's allow "
			"list, which has 'GET,HEAD api.example/repos/me/**' for this host"},
		{paths, "api.example 198.51.100.1 443 GET /repos/me/../x", "write it plainly"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct policy *policy = policy_of(cases[i].json);
		struct policy_answer a = ask(policy, cases[i].target);

		if (!strstr(a.reason, cases[i].want))
			fail_msg("%s of %s: %s", cases[i].target, cases[i].json, a.reason);
		policy_free(policy);
	}
}

static void test_maps_and_tls(void **state)
{
	struct policy *policy = policy_of(
		"{\"net\":\"open\",\"tls\":[\"*.pinned.example=passthrough\"],\"host_map\":["
		"\"*.test=192.0.2.1\",\"*.in.test=192.0.2.2\",\"a.in.test=192.0.2.3\","
		"\"a.in.test:80=192.0.2.4\",\"b.in.test:80=192.0.2.5\"]}");

	assert_string_equal(policy_map(policy, "x.test", 80)->address, "192.0.2.1");
	assert_string_equal(policy_map(policy, "x.in.test", 80)->address, "192.0.2.2");
	assert_string_equal(policy_map(policy, "a.in.test", 443)->address, "192.0.2.3");
	assert_string_equal(policy_map(policy, "a.in.test", 80)->address, "192.0.2.4");
	assert_string_equal(policy_map(policy, "b.in.test", 80)->address, "192.0.2.5");
	assert_string_equal(policy_map(policy, "b.in.test", 443)->address, "192.0.2.2");
	assert_null(policy_map(policy, "test", 80));
	assert_null(policy_map(policy, "xtest", 80));
	assert_null(policy_map(policy, NULL, 80));
	assert_true(policy_is_mapped(policy, "b.in.test"));
	assert_false(policy_is_mapped(policy, "example"));
	assert_int_equal(policy_tls(policy, "a.pinned.example"), SPEC_TLS_PASSTHROUGH);
	assert_int_equal(policy_tls(policy, "pinned.example"), SPEC_TLS_INTERCEPT);
	assert_int_equal(policy_tls(policy, NULL), SPEC_TLS_INTERCEPT);
	policy_free(policy);
}

static void test_paths(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool want;
	} cases[] = {
		{"/", "/", true},
		{"/a", "/a", true},
		{"/a", "/ab", false},
		{"/a*", "/abc", true},
		{"/a*", "/a", true},
		{"/a*", "/a/b", false},
		{"/*", "/", true},
		{"/*/c", "/a/c", true},
		{"/*/c", "/a/b/c", false},
		{"/**/c", "/a/b/c", true},
		{"/**", "/a/b/c", true},
		{"/a/**", "/a/", true},
		{"/a/**", "/a", false},
		{"/a**", "/ab/c", true},
		{"/*.json", "/x.json", true},
		{"/*.json", "/x.json5", false},
		{"/***", "/a/b", true},
		{"/*a*a*a*a*a*a*a*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	};

	for (size_t i = 0; i < LEN(cases); i++)
		if (policy_path_matches(cases[i].pattern, cases[i].path) != cases[i].want)
			fail_msg("%s for %s", cases[i].pattern, cases[i].path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_only_http),
		cmocka_unit_test(test_wants_http),
		cmocka_unit_test(test_shadow),
		cmocka_unit_test(test_own_addresses),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_maps_and_tls),
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
