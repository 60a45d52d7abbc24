/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a TLS flow may have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/mitm.h"

#define PUBLIC \
	{ \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 93, 184, 216, 34 \
	}
#define NO_NAME NULL
#define BROKEN  "?"
#define REFUSED MITM_REFUSE
#define PASSED  MITM_PASSTHROUGH
#define READ    MITM_INTERCEPT

static const struct {
	const char *network; /* JSON of docs/spec.md */
	const char *host;    /* that led here */
	const char *also;    /* another that did */
	const char *asked;   /* by TLS */
	bool synthetic;
	enum mitm_verdict verdict;
	const char *result;        /* the host of the decision */
	const char *rule, *reason; /* parts of them */
} rows[] = {
#define LIST "{\"net\":\"allow\",\"allow\":[\"allowed.test\",\"b.test\"]"
	{LIST "}", "allowed.test", NULL, "allowed.test", false, READ, "allowed.test", "", ""},
	{LIST "}", "allowed.test", NULL, "ALLOWED.TEST", false, READ, "allowed.test", "", ""},
	{LIST "}", "allowed.test", NULL, "allowed.test.", false, READ, "allowed.test", "", ""},
	{LIST "}", "allowed.test", NULL, NO_NAME, false, READ, "allowed.test", "", ""},
	{LIST "}", "allowed.test", NULL, "93.184.216.34", false, READ, "allowed.test", "", ""},
	{LIST "}", "allowed.test", NULL, "93.184.216.35", false, REFUSED, "93.184.216.35",
		"names must agree", ""},
	{LIST "}", "allowed.test", NULL, "denied.test", false, REFUSED, "denied.test",
		"names must agree",
		"'denied.test' at an address that was given out for 'allowed.test'"},
	{LIST "}", "allowed.test", NULL, "b.test", false, REFUSED, "b.test", "names must agree",
		""},
	{LIST "}", "allowed.test", "b.test", "b.test", false, READ, "b.test", "", ""},
	{LIST "}", "allowed.test", "denied.test", "denied.test", false, REFUSED, "denied.test",
		"not in the allow list", ""},
	{LIST "}", "allowed.test", NULL, BROKEN, false, REFUSED, "allowed.test", "must be readable",
		"cannot be read (two names)"},
	{LIST ",\"shadow\":true}", "allowed.test", NULL, "denied.test", false, READ, "denied.test",
		"names must agree", "given out"},
	/* A raw address that no rule names. */
	{LIST "}", NULL, NULL, "denied.test", false, REFUSED, "denied.test", "", ""},
	{LIST "}", NULL, NULL, NO_NAME, false, REFUSED, "", "", ""},
	{"{\"net\":\"allow\",\"allow\":[\"93.184.216.0/24\"]}", NULL, NULL, "c.test", false, READ,
		"c.test", "", ""},
	{"{\"net\":\"allow\",\"allow\":[\"93.184.216.0/24\"]}", NULL, NULL, NO_NAME, false, READ,
		"", "", ""},
	/* Everything public: the name asked for counts. */
	{"{\"net\":\"open\"}", "a.test", NULL, "b.test", false, READ, "b.test", "", ""},
	{"{\"net\":\"open\"}", NULL, NULL, "b.test", false, READ, "b.test", "", ""},
	{"{\"net\":\"open\"}", NULL, NULL, NO_NAME, false, READ, "", "", ""},
	{"{\"net\":\"open\",\"deny\":[\"*.bad.test\"]}", "a.test", NULL, "x.bad.test", false,
		REFUSED, "x.bad.test", "*.bad.test", ""},
	{"{\"net\":\"open\"}", "a.test", NULL, BROKEN, false, PASSED, "a.test", "", ""},
	/* Not looked into. */
	{"{\"net\":\"open\",\"tls\":[\"passthrough\"]}", "a.test", NULL, "a.test", false, PASSED,
		"a.test", "", ""},
	{"{\"net\":\"open\",\"tls\":[\"*.pinned.test=passthrough\"]}", "x.pinned.test", NULL,
		"x.pinned.test", false, PASSED, "x.pinned.test", "", ""},
	{LIST ",\"tls\":[\"passthrough\"]}", "allowed.test", NULL, "denied.test", false, REFUSED,
		"denied.test", "names must agree", ""},
	{"{\"net\":\"allow\",\"allow\":[\"GET a.test/x/**\"],\"tls\":[\"a.test=passthrough\"]}",
		"a.test", NULL, "a.test", false, REFUSED, "a.test", "must be readable",
		"passed through"},
	/* A refused name has no upstream: read, to be told why. */
	{LIST "}", "denied.test", NULL, "denied.test", true, READ, "denied.test",
		"not in the allow list", ""},
	{LIST "}", "denied.test", NULL, NO_NAME, true, READ, "denied.test", "not in the allow list",
		""},
	{LIST "}", "denied.test", NULL, "allowed.test", true, REFUSED, "allowed.test",
		"names must agree", ""},
	{"{\"net\":\"open\",\"deny\":[\"a.test\"]}", "a.test", NULL, "b.test", true, REFUSED,
		"b.test", "names must agree", ""},
	{LIST ",\"tls\":[\"passthrough\"]}", "denied.test", NULL, "denied.test", true, REFUSED,
		"denied.test", "", ""},
};

static bool is_also(void *data, const char *name)
{
	return data && strcmp(data, name) == 0;
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mitm_flow flow = {.host = rows[i].host,
			.has_name = is_also,
			.data = (void *)rows[i].also,
			.address = PUBLIC,
			.has_address = !rows[i].synthetic,
			.port = 443};
		struct tls_hello hello = {.result = TLS_HELLO_NO_NAME};
		scoped(policy) struct policy *policy = NULL;
		struct spec_network network;
		struct mitm_decision d;
		struct err err = {0};

		spec_network_init(&network);
		if (spec_network_read(&network, slice_of(rows[i].network), &err) < 0 ||
			policy_new(&network, &policy, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		if (rows[i].asked && rows[i].asked[0] == '?') {
			hello = (struct tls_hello){
				.result = TLS_HELLO_MALFORMED, .why = "two names"};
		} else if (rows[i].asked) {
			hello.result = TLS_HELLO_NAME;
			assert_int_equal(url_host_read(slice_of(rows[i].asked), &hello.host), 0);
		}
		mitm_decide(policy, &network, &flow, &hello, &d);
		if (d.verdict != rows[i].verdict || strcmp(d.host, rows[i].result) != 0 ||
			!strstr(d.answer.rule, rows[i].rule) ||
			!strstr(d.answer.reason, rows[i].reason))
			fail_msg("row %zu: verdict %d, host '%s', rule '%s', reason '%s'", i,
				(int)d.verdict, d.host, d.answer.rule, d.answer.reason);
		if (d.verdict == MITM_REFUSE && d.answer.reason[0] == '\0')
			fail_msg("row %zu: refused without a reason", i);
		spec_network_done(&network);
	}
}

static void test_alert(void **state)
{
	struct slice alert = mitm_alert();

	assert_int_equal(alert.len, 7);
	assert_memory_equal(alert.p, "\x15\x03\x03\0\x02\x02\x31", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_alert)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
