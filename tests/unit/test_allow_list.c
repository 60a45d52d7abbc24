/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that a run would have needed, from the events of its record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/event_json.h"
#include "spec/spec_rule.h"
#include "util/mem.h"
#include "view/allow_list.h"

#define LEN(a)            (sizeof(a) / sizeof((a)[0]))

#define CONNECT(members)  "\"net.connect\",\"protocol\":\"tcp\"," members
#define HTTP(method, url) "\"net.http\",\"method\":\"" method "\",\"url\":\"" url "\","
#define A443              "\"host\":\"a.example\",\"address\":\"198.51.100.1\",\"port\":443"

#define META              "\"address\":\"169.254.169.254\",\"port\":80"

static const struct {
	const char *events[6]; /* from the value of "kind" on */
	const char *hosts, *paths;
} cases[] = {
	{{CONNECT(A443), HTTP("GET", "https://a.example/x/y?z=1") A443,
		 HTTP("GET", "https://a.example/x/y?z=2") A443,
		 HTTP("POST", "https://a.example/") A443},
		"a.example:443\n", "GET a.example:443/x/y\nPOST a.example:443/\n"},
	{{CONNECT(A443), CONNECT("\"host\":\"a.example\",\"address\":\"198.51.100.1\",\"port\":80,"
				 "\"result\":\"ECONNREFUSED\"")},
		"a.example:443\na.example:80\n", "a.example:443\na.example:80\n"},
	{{CONNECT("\"address\":\"198.51.100.1\",\"port\":22"),
		 CONNECT("\"address\":\"2001:db8::1\",\"port\":22")},
		"198.51.100.1:22\n[2001:db8::1]:22\n", "198.51.100.1:22\n[2001:db8::1]:22\n"},
	/* A look-up needs a rule only where nothing was reached by the name. */
	{{"\"net.dns\",\"name\":\"a.example\",\"type\":\"A\"",
		 "\"net.dns\",\"name\":\"b.example\",\"type\":\"A\"",
		 "\"net.dns\",\"name\":\"none.example\",\"type\":\"A\",\"error\":\"NXDOMAIN\"",
		 CONNECT(A443)},
		"b.example\na.example:443\n", "b.example\na.example:443\n"},
	{{"\"net.dns\",\"name\":\"evil.example\",\"type\":\"A\",\"refused\":true",
		 "\"net.refused\",\"host\":\"evil.example\",\"stage\":\"dns\"",
		 "\"net.refused\",\"host\":\"evil.example\",\"port\":443,\"stage\":\"http\","
		 "\"method\":\"GET\",\"url\":\"https://evil.example/a\"",
		 CONNECT(A443)},
		"a.example:443\n# refused: evil.example:443\n",
		"a.example:443\n# refused: GET evil.example:443/a\n"},
	/* What --shadow let through is needed; what was refused once and then reached too. */
	{{"\"net.refused\",\"host\":\"s.example\",\"port\":443,\"shadow\":true",
		 "\"net.refused\",\"host\":\"a.example\",\"port\":443", CONNECT(A443)},
		"s.example:443\na.example:443\n", "s.example:443\na.example:443\n"},
	/* A try that was refused fails: that is no contact, and no rule to hand out. */
	{{"\"net.refused\",\"flow\":1,\"stage\":\"connect\"," META,
		 CONNECT("\"flow\":1,\"result\":\"ECONNREFUSED\"," META),
		 "\"net.refused\",\"flow\":2,\"stage\":\"connect\"," META,
		 CONNECT("\"flow\":2,\"result\":\"EACCES\"," META), CONNECT("\"flow\":3," A443)},
		"a.example:443\n# refused: 169.254.169.254:80\n",
		"a.example:443\n# refused: 169.254.169.254:80\n"},
	/* Nor is its name. */
	{{"\"net.dns\",\"name\":\"meta.example\",\"type\":\"A\"",
		 "\"net.refused\",\"flow\":1,\"stage\":\"connect\",\"host\":\"meta.example\"," META,
		 CONNECT("\"flow\":1,\"result\":\"ECONNREFUSED\",\"host\":\"meta.example\"," META)},
		"# refused: meta.example:80\n", "# refused: meta.example:80\n"},
	/* A gateway that was started again counts its flows anew. */
	{{"\"net.refused\",\"flow\":1,\"stage\":\"connect\"," META,
		 CONNECT("\"flow\":1,\"result\":\"EACCES\"," META),
		 CONNECT("\"flow\":1,\"result\":\"ECONNREFUSED\"," A443)},
		"a.example:443\n# refused: 169.254.169.254:80\n",
		"a.example:443\n# refused: 169.254.169.254:80\n"},
	/* A private address needs its own rule. */
	{{CONNECT("\"host\":\"db.example\",\"address\":\"10.1.2.3\",\"port\":5432"),
		 CONNECT("\"host\":\"v6.example\",\"address\":\"fd12::1\",\"port\":80")},
		"db.example:5432\n10.1.2.3:5432\nv6.example:80\n[fd12::1]:80\n",
		"db.example:5432\n10.1.2.3:5432\nv6.example:80\n[fd12::1]:80\n"},
	{{"\"net.udp\",\"host\":\"t.example\",\"address\":\"198.51.100.1\",\"port\":123"},
		"t.example:123\n", "t.example:123\n"},
	/* Paths that rules cannot write, and those that no rule matches. */
	{{HTTP("GET", "https://a.example/a%20b/%C3%A4") A443,
		 HTTP("GET", "https://a.example/@me%2fpkg") A443,
		 HTTP("GET", "https://a.example/x/%2e%2e/y") A443,
		 HTTP("GET", "https://a.example/x//y") A443, HTTP("GET", "https://a.example") A443},
		"a.example:443\n",
		"GET a.example:443/a*b/*\nGET a.example:443/**\nGET a.example:443/\n"},
	/* Everything from inside lies. */
	{{"\"net.refused\",\"host\":\"evil.example\\nallowed.example\",\"port\":443",
		 "\"net.dns\",\"name\":\"a b\",\"type\":\"A\"",
		 HTTP("G T\\n", "https://a.example/") A443},
		"a.example:443\n", "a.example:443\n"},
	{{"\"file.open\",\"path\":\"/etc/hosts\""}, "", ""},
};

static void read_all(struct allow_list *list, const char *const *events)
{
	struct event_line *line = NULL;
	struct err err = {0};

	for (size_t i = 0; i < LEN(cases[0].events) && events[i]; i++) {
		scoped_mem char *text = mem_printf(
			"{\"v\":1,\"sandbox\":\"sb_0000000000000000\",\"seq\":%zu,\"guest_ns\":1,"
			"\"wall_ms\":1,\"kind\":%s}",
			i + 1, events[i]);

		if (event_json_read(slice_of(text), &line, &err) < 0)
			fail_msg("%s: %s", text, err.msg);
		allow_list_add(list, event_json_get(line));
	}
	event_line_free(line);
}

static void test_rules(void **state)
{
	for (size_t i = 0; i < 2 * LEN(cases); i++) {
		const char *want = i % 2 ? cases[i / 2].paths : cases[i / 2].hosts;
		struct view_filter filter = {0};
		struct view_style style = {0};
		struct allow_list *list = allow_list_new(&filter, i % 2);
		struct str text = {0}, json = {0};

		read_all(list, cases[i / 2].events);
		allow_list_text(list, &style, &text);
		if (strcmp(text.p ? text.p : "", want) != 0)
			fail_msg("case %zu: '%s', not '%s'", i / 2, text.p ? text.p : "", want);
		allow_list_json(list, &json);
		assert_int_equal(json.p[0], '[');
		assert_true(!*want == (strcmp(json.p, "[]") == 0));
		allow_list_free(list);
		str_done(&text);
		str_done(&json);
	}
}

/* Each line is a rule as --allow takes it. */
static void test_rules_can_be_read(void **state)
{
	for (size_t i = 0; i < LEN(cases); i++) {
		scoped_mem char *text = mem_dup(cases[i].paths);
		char *rest = text, *line;

		while ((line = strsep(&rest, "\n")) && *line) {
			struct spec_rule rule;
			struct err err = {0};

			line += strncmp(line, "# refused: ", 11) == 0 ? 11 : 0;
			if (spec_rule_parse(line, &rule, &err) < 0)
				fail_msg("%s: %s", line, err.msg);
			spec_rule_done(&rule);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rules_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
