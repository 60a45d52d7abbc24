/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "record/redact.h"

/* # stands for "[redacted #......]". */
static const struct {
	const char *in, *want;
} text_cases[] = {
	/* known tokens */
	{"sk-proj-abcDEF1234567890abcdef", "#"},
	{"use sk-test1234567890abcdef.", "use #."},
	{"ghp_0123456789abcdefghijABCDEFGHIJ012345", "#"},
	{"x github_pat_11AAAAAAA0abcdefghijkl_mnop y", "x # y"},
	{"xoxb-123456789012-abcdefGHIJ", "#"},
	{"AKIAIOSFODNN7EXAMPLE", "#"},
	{"AIzaSyA-1234567890abcdefghijklmnopqrstu", "#"},
	{"glpat-abcdefghij0123456789", "#"},
	{"npm_abcdefghijklmnopqrstuvwxyz0123456789", "#"},
	{"Bearer clo_0123456789abcdefghijABCDEFGHIJ_-2345678901-", "Bearer #"},
	{"a=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_X", "a=#"},
	/* and what only looks like them */
	{"risk-management-and-2021-strategy-review-of-all", "="},
	{"sk-estonia-2021-report-final-version", "="},
	{"task-1234567890123456", "="},
	{"AKIA-IOSFODNN7EXAMPLE", "="},
	{"AKIAIOSFODNN7EXAMPLEX", "="},
	{"eyJhbGciOiJIUzI1NiJ9", "="},
	{"ghp_short", "="},
	{"clo_0123456789abcdefghijABCDEFGHIJ_-2345678901", "="},
	{"npm_config_cache=/x", "="},
	{"9fea9161b5c1d2a4e8f7a6b5c4d3e2f1a0b9c8d7", "="},
	{"/usr/lib/python3/dist-packages/secrets.py", "="},
	{"/home/u/.ssh/id_rsa /etc/shadow", "="},
	{"data.b64: c2VjcmV0IGJ1dCBub3QgYSB0b2tlbg==", "="},
	/* names of variables */
	{"OPENAI_API_KEY=abc123", "OPENAI_API_KEY=#"},
	{"export GITHUB_TOKEN='a b'; run", "export GITHUB_TOKEN='#'; run"},
	{"DB_PASSWORD=p&x", "DB_PASSWORD=#&x"},
	{"password=hunter2 user=me", "password=# user=me"},
	{"--token=abc --x", "--token=# --x"},
	{"dbPassword=abc", "dbPassword=#"},
	{"AWS_SECRET_ACCESS_KEY=wJalr/K7 b", "AWS_SECRET_ACCESS_KEY=# b"},
	{"API_KEY_2=x", "API_KEY_2=#"},
	{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = #"},
	{"password = \"open sesame\"", "password = \"#\""},
	{"MYSQL_PWD=x", "MYSQL_PWD=#"},
	{"GET /a?access_token=abc&x=1", "GET /a?access_token=#&x=1"},
	{"TOKEN=", "="},
	{"TOKEN=$TOKEN x", "="},
	{"TOKEN=\"$(cat f)\"", "="},
	{"token=None", "="},
	{"PASSWORD=****", "="},
	{"KEYBOARD=us MONKEY=1 TOKENIZERS_PARALLELISM=false", "="},
	{"--token-limit 5 --token-limit=5 MAX_TOKENS=100", "="},
	{"--password-file /x --key=2 sort --key 2", "="},
	{"sorted(x, key=lambda a: a)", "="},
	{"if token == other: pass", "="},
	{"password = getpass.getpass()", "="},
	{"PWD=/work OLDPWD=/", "="},
	{"SECRET_NAME=x KEY_FILE=y TOKEN_URL=z", "="},
	/* options */
	{"deploy --password hunter2 --x", "deploy --password # --x"},
	{"tool --api-key \"a b\" c", "tool --api-key \"#\" c"},
	{"tool --password --next", "="},
	{"tool --token $T", "="},
	{"curl -s -u bob:pw https://h/", "curl -s -u bob:# https://h/"},
	{"curl --user 'bob:pw' h", "curl --user 'bob:#' h"},
	{"docker run -u 1000:1000 x", "="},
	/* headers */
	{"Authorization: Bearer abc", "Authorization: Bearer #"},
	{"authorization: Basic dXNlcjpwYXNz\r\nA: b", "authorization: Basic #\r\nA: b"},
	{"Authorization: rawvalue", "Authorization: #"},
	{"Cookie: a=b; c=d\nX: y", "Cookie: #\nX: y"},
	{"X-Api-Key: k1\n", "X-Api-Key: #\n"},
	{"curl -H 'PRIVATE-TOKEN: abc' x", "curl -H 'PRIVATE-TOKEN: #' x"},
	{"got Bearer abcdef123456", "got Bearer #"},
	{"Authorization: Bearer $TOKEN", "="},
	{"the bearer of good news and bearer authentication", "="},
	{"{\"api_key\": \"v\", \"a\":1}", "{\"api_key\": \"#\", \"a\":1}"},
	{"{\\\"password\\\":\\\"v\\\"}", "{\\\"password\\\":\\\"#\\\"}"},
	{"password: hunter2", "password: #"},
	{"Enter password: ", "="},
	{"SyntaxError: invalid token: foo", "="},
	{"wrong password: try again", "="},
	{"max_tokens: 5, token: 3", "="},
	{"Content-Type: text/plain", "="},
	/* URLs */
	{"https://bob:pw@host/p?a=b", "https://bob:#@host/p?a=b"},
	{"postgres://u:p%40w@h:5432/db", "postgres://u:#@h:5432/db"},
	{"https://0123456789abcdef0123@h/", "https://#@h/"},
	{"ssh://git@host/x http://h:80/a@b", "="},
	{"https://host/x?next=http://other/@me", "="},
	/* keys */
	{"a\n-----BEGIN RSA PRIVATE KEY-----\nMII\nB\n-----END RSA PRIVATE KEY-----\nb",
		"a\n-----BEGIN RSA PRIVATE KEY-----#-----END RSA PRIVATE KEY-----\nb"},
	{"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----", "="},
	{"", "="},
	{"=", "="},
	{"--", "="},
	{":", "="},
	{"://", "="},
	{"\":", "="},
	{"password:", "="},
	{"Bearer ", "="},
	{"PASSWORD=\\", "PASSWORD=#"},
	{"PASSWORD=\"", "="},
};

/* '#' for each mark. */
static void check_redacted(const char *in, bool found, const struct str *out, const char *want)
{
	scoped_str struct str plain = {0};
	const char *p = out->p;

	for (; found && *p; p++) {
		if (strncmp(p, "[redacted #", 11) == 0) {
			str_putc(&plain, '#');
			p += 17;
			assert_int_equal(*p, ']');
		} else {
			str_putc(&plain, *p);
		}
	}
	if (strcmp(want, "=") == 0 ? found : !found || strcmp(plain.p, want) != 0)
		fail_msg("'%s' gave '%s'", in, found ? plain.p : "=");
	if (found && strstr(in, "hunter2"))
		assert_null(strstr(out->p, "hunter2"));
}

static void test_text(void **state)
{
	scoped(redact) struct redact *redact = redact_new("sb_1");

	for (size_t i = 0; i < sizeof(text_cases) / sizeof(text_cases[0]); i++) {
		scoped_str struct str out = {0};
		bool found = redact_text(redact, slice_of(text_cases[i].in), &out);

		check_redacted(text_cases[i].in, found, &out, text_cases[i].want);
	}
}

/* The end of a text that is cut behind, or the beginning of one that is cut before. */
static void test_cut(void **state)
{
	static const struct {
		bool is_tail;
		const char *in, *want;
	} cases[] = {
		{false, "a ghp_01234567", "a #"},
		{false, "a ghp_0", "="},
		{false, "a=\"sk-proj-AbcdefghijKlmnop", "a=\"#"},
		{false, "\"password\": \"hunter2", "\"password\": \"#"},
		{false, "token=hunter2hunter2", "token=#"},
		{false, "some words, understandably", "="},
		{false, "numbers 1234567890123", "="},
		{false, "hunter2abc is not at the end", "="},
		{false, "", "="},
		{false, "-----BEGIN PRIVATE KEY-----\nMIIhunter2\nMII",
			"-----BEGIN PRIVATE KEY-----#"},
		{true, "0123456789abcdef, b", "#, b"},
		{true, "hunter2hunter2\", \"api_key\": \"hunter2\"", "#\", \"api_key\": \"#\""},
		{true, "KlmnopqrstuvwxyzAbcde", "#"},
		{true, "and so on hunter3hunter3", "="},
		{true, "MIIEhunter2hunter2\nMIIhunter2\n-----END RSA PRIVATE KEY-----\nb",
			"#-----END RSA PRIVATE KEY-----\nb"},
		{true, "a\n-----END CERTIFICATE-----\nb", "="},
		{true, "a\n-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nb",
			"a\n-----BEGIN PRIVATE KEY-----#-----END PRIVATE KEY-----\nb"},
	};
	scoped(redact) struct redact *redact = redact_new("sb_1");
	char data[5001];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped_str struct str out = {0};
		bool found = redact_text_cut(redact, slice_of(cases[i].in), cases[i].is_tail, &out);

		check_redacted(cases[i].in, found, &out, cases[i].want);
	}
	for (size_t i = 0; i < sizeof(data) - 1; i++)
		data[i] = "aB3"[i % 3];
	data[sizeof(data) - 1] = '\0';
	for (int tail = 0; tail < 2; tail++) {
		scoped_str struct str out = {0};

		assert_false(redact_text_cut(redact, slice_of(data), tail, &out));
	}
}

static void test_fingerprint(void **state)
{
	scoped(redact) struct redact *a = redact_new("sb_1"), *b = redact_new("sb_2");
	scoped_str struct str one = {0}, two = {0}, other = {0};

	assert_true(redact_text(a, slice_of("TOKEN=abc"), &one));
	assert_true(redact_text(a, slice_of("TOKEN='abc'"), &two));
	assert_true(redact_text(b, slice_of("TOKEN=abc"), &other));
	/* printf 'sb_1\nabc' | sha256sum */
	assert_string_equal(one.p, "TOKEN=[redacted #838470]");
	assert_string_equal(two.p, "TOKEN='[redacted #838470]'");
	assert_string_not_equal(one.p, other.p);
}

static void test_list(void **state)
{
	static const struct {
		const char *in[5], *want;
	} cases[] = {
		{{"deploy", "--password", "hunter2", "x"}, "deploy|--password|#|x|"},
		{{"deploy", "--password=a b", "x"}, "deploy|--password=#|x|"},
		{{"sh", "-c", "TOKEN=abc curl h"}, "sh|-c|TOKEN=# curl h|"},
		{{"env", "TOKEN=abc def", "x"}, "env|TOKEN=#|x|"},
		{{"/usr/bin/curl", "-u", "bob:pw", "h"}, "/usr/bin/curl|-u|bob:#|h|"},
		{{"curl", "-ubob:pw", "h"}, "curl|-ubob:#|h|"},
		{{"curl", "-H", "Authorization: Bearer abc"}, "curl|-H|Authorization: Bearer #|"},
		{{"sshpass", "-p", "pw", "ssh"}, "sshpass|-p|#|ssh|"},
		{{"sshpass", "-ppw", "ssh"}, "sshpass|-p#|ssh|"},
		{{"mkdir", "-p", "pw"}, "="},
		{{"docker", "-u", "1:1"}, "="},
		{{"tool", "--token-limit", "5"}, "="},
		{{"tool", "--password"}, "="},
		{{"sort", "--key", "2"}, "="},
		{{"tool", "--token", "$T"}, "="},
	};
	scoped(redact) struct redact *redact = redact_new("sb_1");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice items[5];
		struct event_list list = {.items = items};
		struct event ev = {.kind = EVENT_PROCESS_EXEC};
		const struct event *kept;
		scoped_str struct str got = {0};

		for (; list.n < 5 && cases[i].in[list.n]; list.n++)
			items[list.n] = slice_of(cases[i].in[list.n]);
		event_set(&ev, argv, list);
		event_set(&ev, path, slice_of("/bin/x"));
		kept = redact_event(redact, &ev);
		for (size_t k = 0; k < kept->argv.n; k++) {
			struct slice item = kept->argv.items[k];
			const char *mark = memmem(item.p, item.len, "[redacted #", 11);

			if (mark)
				str_printf(&got, "%.*s#%.*s|", (int)(mark - item.p), item.p,
					(int)(item.p + item.len - mark - 18), mark + 18);
			else
				str_printf(&got, "%.*s|", (int)item.len, item.p);
		}
		if (strcmp(cases[i].want, "=") == 0)
			assert_ptr_equal(kept, &ev);
		else
			assert_string_equal(got.p, cases[i].want);
		assert_true(slice_is(kept->path, "/bin/x"));
	}
}

static void test_raw(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"{\"a\":\"TOKEN=x\\\\\",\"b\":1}", "{\"a\":\"TOKEN=#\",\"b\":1}"},
		{"{\"a\":\"Cookie: k=\\\"v\\\"\"}", "{\"a\":\"Cookie: #\\\"v\\\"\"}"},
		{"[\"-----BEGIN RSA PRIVATE KEY-----\\nMII\"]",
			"[\"-----BEGIN RSA PRIVATE KEY-----#\"]"},
		{"{\"api_key\":\"x\"}", "{\"api_key\":\"#\"}"},
		{"{\"a\":\"b\"}", "="},
	};
	scoped(redact) struct redact *redact = redact_new("sb_1");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event ev = {.kind = EVENT_EXEC_START};
		const struct event *kept;
		const char *mark;
		scoped_str struct str got = {0};

		event_set(&ev, labels, slice_of(cases[i].in));
		kept = redact_event(redact, &ev);
		mark = memmem(kept->labels.p, kept->labels.len, "[redacted #", 11);
		if (mark)
			str_printf(&got, "%.*s#%s", (int)(mark - kept->labels.p), kept->labels.p,
				mark + 18);
		assert_string_equal(mark ? got.p : "=", cases[i].want);
	}
}

/* The text with each mark as #. */
static void add_marked(struct str *out, struct slice text)
{
	const char *mark;

	while (text.len && (mark = memmem(text.p, text.len, "[redacted #", 11))) {
		str_printf(out, "%.*s#", (int)(mark - text.p), text.p);
		text.len -= (size_t)(mark + 18 - text.p);
		text.p = mark + 18;
	}
	str_add(out, text.p ? text.p : "", text.len);
}

static void test_headers(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"{\"authorization\":\"Bearer abc\",\"accept\":\"*/*\"}",
			"{\"authorization\":\"Bearer #\",\"accept\":\"*/*\"}"},
		{"{\"proxy-authorization\":\"Basic dTpw\"}",
			"{\"proxy-authorization\":\"Basic #\"}"},
		{"{\"authorization\":\"Digest username=\\\"x\\\", response=\\\"y\\\"\"}",
			"{\"authorization\":\"Digest #\"}"},
		{"{\"authorization\":\"rawvalue\"}", "{\"authorization\":\"#\"}"},
		{"{\"cookie\":\"a=\\\"b\\\"; c=d\"}", "{\"cookie\":\"#\"}"},
		{"{\"set-cookie\":\"a=b; Path=/,c=d\"}", "{\"set-cookie\":\"#\"}"},
		{"{\"x-api-key\":\"k\",\"X-Goog-Api-Key\":\"v\"}",
			"{\"x-api-key\":\"#\",\"X-Goog-Api-Key\":\"#\"}"},
		{"{\"x-client-secret\":\"k\"}", "{\"x-client-secret\":\"#\"}"},
		{"{\"referer\":\"http://h/?token=abc\"}", "{\"referer\":\"http://h/?token=#\"}"},
		{"{\"x-note\":\"ghp_0123456789abcdefghijABCDEFGHIJ012345\"}", "{\"x-note\":\"#\"}"},
		{"{\"authorization\":\"Bearer stand-in-1\",\"x-api-key\":\"stand-in-1\"}", "="},
		{"{\"authorization\":\"Bearer stand-in-12\"}", "{\"authorization\":\"Bearer #\"}"},
		{"{\"host\":\"h\",\"content-type\":\"text/plain\",\"cookie\":\"\"}", "="},
		{"{}", "="},
		{"[\"authorization\"]", "\"[redacted]\""},
		{"{\"authorization\":\"Bearer abc", "\"[redacted]\""},
	};
	scoped(redact) struct redact *redact = redact_new("sb_1");

	redact_allow(redact, slice_of("stand-in-1"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event ev = {.kind = EVENT_NET_HTTP};
		const struct event *kept;
		scoped_str struct str got = {0};

		event_set(&ev, headers, slice_of(cases[i].in));
		event_set(&ev, response_headers, slice_of(cases[i].in));
		kept = redact_event(redact, &ev);
		if (strcmp(cases[i].want, "=") == 0) {
			assert_ptr_equal(kept, &ev);
			continue;
		}
		add_marked(&got, kept->headers);
		assert_string_equal(got.p, cases[i].want);
		assert_true(slice_eq(kept->headers, kept->response_headers));
	}
}

/* A sentence about a request repeats its path. */
static void test_reasons(void **state)
{
	scoped(redact) struct redact *redact = redact_new("sb_1");
	struct event ev = {.kind = EVENT_NET_REFUSED};
	scoped_str struct str got = {0};

	event_set(&ev, reason, slice_of("GET /x?access_token=abc on a.test is not in the list"));
	add_marked(&got, redact_event(redact, &ev)->reason);
	assert_string_equal(got.p, "GET /x?access_token=# on a.test is not in the list");
	event_set(&ev, reason, slice_of("a.test leads to 10.0.0.1, a private address"));
	assert_ptr_equal(redact_event(redact, &ev), &ev);
}

static void test_bodies(void **state)
{
	static const struct {
		const char *in, *encoding, *want;
	} cases[] = {
		{"{\"k\":\"sk-proj-abcDEF1234567890abcdef\",\"n\":1}", "utf8",
			"{\"k\":\"#\",\"n\":1}"},
		{"{\"authorization\":\"Bearer abc\"}", "utf8", "{\"authorization\":\"#\"}"},
		{"a=1&password=hunter2&b=2", "utf8", "a=1&password=#&b=2"},
		/* "\xff password=hunter2\n" */
		{"/yBwYXNzd29yZD1odW50ZXIyCg==", "base64", NULL},
		{"/yBub3RoaW5nCg==", "base64", "="},
		{"not base64: ghp_0123456789abcdefghijABCDEFGHIJ012345", "base64", "="},
		{"nothing here", "utf8", "="},
	};
	scoped(redact) struct redact *redact = redact_new("sb_1");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event ev = {.kind = EVENT_NET_HTTP};
		const struct event *kept;
		scoped_str struct str got = {0};

		event_set(&ev, body, slice_of(cases[i].in));
		event_set(&ev, body_encoding, slice_of(cases[i].encoding));
		event_set(&ev, url, slice_of("https://h/?api_key=v"));
		kept = redact_event(redact, &ev);
		assert_int_equal(kept->url.len, strlen("https://h/?api_key=[redacted #......]"));
		add_marked(&got, kept->body);
		if (!cases[i].want)
			assert_true(slice_starts(kept->body, "/yBwYXNzd29yZD1bcmVkYWN0ZWQgI"));
		else if (strcmp(cases[i].want, "=") == 0)
			assert_string_equal(got.p, cases[i].in);
		else
			assert_string_equal(got.p, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_raw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
