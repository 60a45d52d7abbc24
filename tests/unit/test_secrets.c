/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gateway/secrets.h"
#include "http_drive.h"
#include "util/base64.h"
#include "util/jsonw.h"

/* The stand-ins are as spec_stand_in.h makes them: same length, same kinds, signs in their places. */
/* The lists own their texts elsewhere. */
#define T(text) ((char *)(uintptr_t)(text))
#define VALUE   "sk-ant-REALrealREAL123/+x"
#define STAND   "sk-ant-FAKEfakeFAKE456/+y"
#define VALUE_2 "tok_0011223344556677"
#define STAND_2 "tok_9988776655443322"
#define SHORT   "pass\"w0rd1"
#define STAND_S "qbzz\"x3ye2"

static char *hosts_1[] = {T("api.test"), T("*.wild.test:443")}, *hosts_2[] = {T("two.test")},
	    *hosts_3[] = {T("api.test"), T("192.0.2.7")},
	    *pass_1[] = {T("model.test"), T("*.wild.test")};
static const struct spec_secret list[] = {
	{.name = T("ONE"),
		.hosts = {hosts_1, 2},
		.pass = {pass_1, 2},
		.stand_in = T(STAND),
		.value = T(VALUE)},
	{.name = T("TWO"),
		.hosts = {hosts_2, 1},
		.stand_in = T(STAND_2),
		.value = T(VALUE_2),
		.plain = true},
	{.name = T("SHORT"), .hosts = {hosts_3, 2}, .stand_in = T(STAND_S), .value = T(SHORT)},
};

static struct secrets *make(void)
{
	struct secrets *set = NULL;
	struct err err;

	assert_int_equal(secrets_new(list, 3, &set, &err), 0);
	return set;
}

static void test_bound(void **state)
{
	scoped(secrets) struct secrets *set = make();

	assert_int_equal(secrets_all(set), 7);
	assert_int_equal(secrets_bound(set, "api.test", 443, true), 1 | 4);
	assert_int_equal(secrets_bound(set, "api.test", 443, false), 0);
	assert_int_equal(secrets_bound(set, "x.wild.test", 443, true), 1);
	assert_int_equal(secrets_bound(set, "x.wild.test", 444, true), 0);
	assert_int_equal(secrets_bound(set, "wild.test", 443, true), 0);
	assert_int_equal(secrets_bound(set, "two.test", 80, false), 2);
	assert_int_equal(secrets_bound(set, "192.0.2.7", 443, true), 4);
	assert_int_equal(secrets_bound(set, "xapi.test", 443, true), 0);
	assert_int_equal(secrets_bound(set, NULL, 443, true), 0);
	/* Who may know them is asked by the name alone. */
	assert_int_equal(secrets_known(set, "api.test"), secrets_bound(set, "api.test", 443, true));
	assert_int_equal(secrets_known(set, "x.wild.test"), 1);
	assert_int_equal(secrets_known(set, "two.test"), 2);
	assert_int_equal(secrets_known(set, "xapi.test"), 0);
	assert_int_equal(secrets_known(set, NULL), 0);
}

static const struct {
	const char *in, *out;
	uint64_t done;
} fields[] = {
	{"Bearer " STAND, "Bearer " VALUE, 1},
	{STAND STAND, VALUE VALUE, 1},
	{"a " STAND " b " STAND_2, "a " VALUE " b " VALUE_2, 3},
	{"sk-ant-FAKEfakeFAKE456%2F%2By", "sk-ant-REALrealREAL123%2F%2Bx", 1},
	{"sk-ant-FAKEfakeFAKE456%2f%2by", "sk-ant-REALrealREAL123%2f%2bx", 1},
	{"sk-ant-FAKEfakeFAKE456/%2By", "sk-ant-REALrealREAL123/%2Bx", 1},
	{"sk-ant-FAKEfakeFAKE456\\/+y", "sk-ant-REALrealREAL123\\/+x", 1},
	{"qbzz\\\"x3ye2", "pass\\\"w0rd1", 4},
	{"qbzz%22x3ye2", "pass%22w0rd1", 4},
	{"SK-ANT-FAKEFAKEFAKE456/+Y", "SK-ANT-FAKEFAKEFAKE456/+Y", 0},
	{"sk-ant-FAKEfakeFAKE456/+", "sk-ant-FAKEfakeFAKE456/+", 0},
	/* every byte percent-encoded is not a place */
	{"%74%6F%6B%5F%39", "%74%6F%6B%5F%39", 0},
};

static void test_fields(void **state)
{
	scoped(secrets) struct secrets *set = make();

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		scoped_str struct str out = {0};

		assert_int_equal(
			secrets_put_field(set, 7, slice_of(fields[i].in), &out), fields[i].done);
		assert_string_equal(out.p, fields[i].out);
	}
}

static void basic(struct str *out, const char *plain)
{
	str_puts(out, "Basic ");
	jsonw_base64(out, plain, strlen(plain));
}

/* Whatever the length of the user's name, so at every place within a group of three. */
static void test_basic(void **state)
{
	static const char *const users[] = {"", "u", "us", "usr", "user"};
	scoped(secrets) struct secrets *set = make();

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		scoped_str struct str in = {0}, want = {0}, out = {0}, plain = {0};

		str_printf(&plain, "%s:" STAND, users[i]);
		basic(&in, plain.p);
		str_reset(&plain);
		str_printf(&plain, "%s:" VALUE, users[i]);
		basic(&want, plain.p);
		assert_int_equal(secrets_put_field(set, 1, str_slice(&in), &out), 1);
		assert_string_equal(out.p, want.p);
		assert_int_equal(secrets_find(set, 1, str_slice(&in)), 1);
		assert_int_equal(secrets_find(set, 2, str_slice(&in)), 0);
		/* and back, to the bit */
		secrets_put_back(set, 1, out.p, out.len);
		assert_string_equal(out.p, in.p);
	}
}

static void test_path(void **state)
{
	scoped(secrets) struct secrets *set = make();
	scoped_str struct str out = {0};

	assert_int_equal(
		secrets_put_path(set, 7, slice_of("/a?k=" STAND_2 "&s=qbzz%22x3ye2"), &out), 2);
	assert_string_equal(out.p, "/a?k=" VALUE_2 "&s=qbzz%22x3ye2");
}

static void test_find(void **state)
{
	static const char *const hidden[] = {STAND_2, "x" STAND_2 "x",
		"%74%6F%6B%5F%39%39%38%38%37%37%36%36%35%35%34%34%33%33%32%32",
		"%74%6f%6b%5f%39%39%38%38%37%37%36%36%35%35%34%34%33%33%32%32"};
	scoped(secrets) struct secrets *set = make();

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		assert_int_equal(secrets_find(set, 7, slice_of(hidden[i])), 2);
		assert_int_equal(secrets_find(set, 5, slice_of(hidden[i])), 0);
	}
	for (size_t n = 0; n < 6; n++) {
		scoped_str struct str plain = {0}, code = {0};

		str_puts(&plain, "abcdef");
		plain.len = n;
		str_puts(&plain, STAND_2 "zz");
		jsonw_base64(&code, plain.p, plain.len);
		assert_int_equal(secrets_find(set, 7, str_slice(&code)), 2);
	}
}

/* All the forms in one answer, in every cutting; and the same text without a secret, which passes as it is. */
static void test_back_in_pieces(void **state)
{
	scoped(secrets) struct secrets *set = make();
	scoped_str struct str in = {0}, want = {0};

	str_puts(&in, "{\"a\":\"" VALUE "\",\"b\":\"sk-ant-REALrealREAL123\\/"
		      "+x\",\"c\":\"sk-ant-REALrealREAL123%2F%2Bx\"} sk-");
	str_puts(&want, "{\"a\":\"" STAND "\",\"b\":\"sk-ant-FAKEfakeFAKE456\\/"
			"+y\",\"c\":\"sk-ant-FAKEfakeFAKE456%2F%2By\"} sk-");
	for (int n = 0; n < 3; n++) {
		scoped_str struct str a = {0}, b = {0};

		for (int i = 0; i <= n; i++) {
			str_putc(&a, 'u');
			str_putc(&b, 'u');
		}
		str_puts(&a, VALUE "!");
		str_puts(&b, STAND "!");
		jsonw_base64(&in, a.p, a.len);
		jsonw_base64(&want, b.p, b.len);
		str_putc(&in, ' ');
		str_putc(&want, ' ');
	}
	for (size_t a = 0; a <= in.len; a++)
		for (size_t step = 1; step <= in.len; step += 13) {
			struct secrets_stream s = {.secrets = set, .back = 1};
			scoped_str struct str out = {0};

			secrets_stream_add(&s, (struct slice){in.p, a}, &out);
			for (size_t at = a; at < in.len; at += step)
				secrets_stream_add(&s,
					(struct slice){
						in.p + at, in.len - at < step ? in.len - at : step},
					&out);
			secrets_stream_end(&s, &out);
			secrets_stream_done(&s);
			assert_string_equal(out.p, want.p);
		}
}

static void test_put_and_find_in_pieces(void **state)
{
	static const char in[] = "k=" STAND "&k2=" STAND_2 "&s=" STAND_S "&sk-ant-FAKE";
	static const char want[] = "k=" VALUE "&k2=";
	scoped(secrets) struct secrets *set = make();

	for (size_t step = 1; step < sizeof(in); step++) {
		struct secrets_stream s = {.secrets = set, .put = 1 | 4, .find = 2};
		scoped_str struct str out = {0};

		for (size_t at = 0; at < sizeof(in) - 1 && !s.found; at += step) {
			size_t n = sizeof(in) - 1 - at < step ? sizeof(in) - 1 - at : step;

			str_reset(&out);
			secrets_stream_add(&s, (struct slice){in + at, n}, &out);
		}
		assert_int_equal(s.found, 2);
		secrets_stream_done(&s);
	}
	for (size_t step = 1; step < sizeof(in); step++) {
		struct secrets_stream s = {.secrets = set, .put = 1 | 4};
		scoped_str struct str out = {0};

		for (size_t at = 0; at < sizeof(in) - 1; at += step)
			secrets_stream_add(&s,
				(struct slice){in + at,
					sizeof(in) - 1 - at < step ? sizeof(in) - 1 - at : step},
				&out);
		secrets_stream_end(&s, &out);
		secrets_stream_done(&s);
		assert_int_equal(s.done, 1);
		assert_int_equal(out.len, sizeof(in) - 1);
		assert_memory_equal(out.p, want, sizeof(want) - 1);
		assert_string_equal(out.p + sizeof(want) - 1, STAND_2 "&s=" STAND_S "&sk-ant-FAKE");
	}
}

/* Only what may be a beginning is held: an event of a stream is not kept back for its last bytes. */
static void test_no_delay(void **state)
{
	scoped(secrets) struct secrets *set = make();
	struct secrets_stream s = {.secrets = set, .back = 7};
	scoped_str struct str out = {0};

	secrets_stream_add(&s, slice_of("data: {\"x\":1}\n\n"), &out);
	assert_string_equal(out.p, "data: {\"x\":1}\n\n");
	secrets_stream_add(&s, slice_of("data: sk-ant-R"), &out);
	assert_string_equal(out.p, "data: {\"x\":1}\n\ndata: ");
	secrets_stream_done(&s);
}

static void test_refused_lists(void **state)
{
	static char *bad_hosts[] = {T("x:99999")};
	const struct spec_secret uneven = {
		.name = T("X"), .value = T("aaaaaaaa"), .stand_in = T("bbbbbbb")};
	const struct spec_secret malformed = {.name = T("X"),
		.value = T("aaaaaaaa"),
		.stand_in = T("bbbbbbbb"),
		.hosts = {bad_hosts, 1}};
	const struct spec_secret empty = {.name = T("X"), .stand_in = T("bbbbbbbb")};
	struct secrets *set = NULL;
	struct err err;

	assert_int_equal(secrets_new(&uneven, 1, &set, &err), -22);
	assert_string_equal(err.msg, "secret X: its stand-in is not as long as its value");
	assert_int_equal(secrets_new(&malformed, 1, &set, &err), -22);
	assert_null(set);
	assert_int_equal(secrets_new(&empty, 1, &set, &err), 0);
	assert_int_equal(secrets_all(set), 0);
	secrets_free(set);
}

/* Through the machine. */
struct row {
	const char *host; /* that led there */
	bool verified;
	const char *head, *body; /* of the request, behind its Host */
	const char *to_server;   /* a part of what arrives there; NULL: nothing may */
	const char *log;         /* a part of what is told */
};

static const struct row rows[] = {
	{"api.test", true, "X: Bearer " STAND "\r\nAccept-Encoding: br, gzip\r\n", "k=" STAND,
		"X: Bearer " VALUE "\r\nAccept-Encoding: identity\r\n\r\nk=" VALUE,
		"len=27 body=27:k=" STAND " -> 200 len=31 body=31:" STAND "&echo= secret=ONE\n"},
	{"api.test", true, "Content-Encoding: gzip\r\n", "k=" STAND, "\r\n\r\nk=" STAND,
		"body=27:k=" STAND},
	{"api.test", false, "X: " STAND "\r\n", "", NULL,
		"misuse ONE api.test header\nrefused 403 POST"},
	{"other.test", true, "X: " STAND "\r\n", "", NULL,
		"misuse ONE other.test header\nrefused 403 POST"},
	{"other.test", true, "Authorization: Basic OnNrLWFudC1GQUtFZmFrZUZBS0U0NTYvK3k=\r\n", "",
		NULL, "misuse ONE other.test header\n"},
	{"two.test", false, "X: " STAND_2 "\r\n", "", "X: " VALUE_2 "\r\n", " secret=TWO\n"},
	{"two.test", false, "X: " STAND_2 "\r\nY: " STAND_S "\r\n", "", NULL,
		"misuse SHORT two.test header\n"},
};

static void check(const struct row *row, const struct secrets *set, size_t step)
{
	scoped_str struct str in = {0};
	struct http_setup setup = {.tls = row->verified,
		.verified = row->verified,
		.name = row->host,
		.port = row->verified ? 443 : 80,
		.body_limit = 1000,
		.secrets = set,
		.record_responses = true,
		.hooks = &http_drive_hooks};
	struct http_drive d = {.step = step};

	setup.arg = &d;
	http_machine_new(&setup, &d.machine);
	str_printf(&in, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n%s\r\n%s", row->host,
		strlen(row->body), row->head, row->body);
	http_drive_send(&d, MACHINE_CLIENT, str_slice(&in));
	if (row->to_server)
		http_drive_send(&d, MACHINE_SERVER,
			slice_of("HTTP/1.1 200 OK\r\nE: " VALUE
				 "\r\nContent-Length: 31\r\n\r\n" VALUE "&echo="));
	str_putc(&d.got[MACHINE_SERVER], '\0');
	str_putc(&d.got[MACHINE_CLIENT], '\0');
	if (row->to_server)
		assert_non_null(strstr(d.got[MACHINE_SERVER].p, row->to_server));
	else
		assert_string_equal(d.got[MACHINE_SERVER].p, "");
	if (strcmp(row->host, "two.test") !=
		0) /* the server says it there without having been told */
		assert_null(strstr(d.log.p, VALUE));
	assert_null(strstr(d.log.p, VALUE_2));
	assert_non_null(strstr(d.log.p, row->log));
	if (strcmp(row->host, "api.test") == 0 && row->verified)
		assert_non_null(strstr(d.got[MACHINE_CLIENT].p,
			"E: " STAND "\r\nContent-Length: 31\r\n\r\n" STAND));
	http_drive_done(&d);
}

static void test_exchanges(void **state)
{
	scoped(secrets) struct secrets *set = make();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t step = 1; step < 400; step += 3)
			check(&rows[i], set, step);
}

/* The name in a request is the program's word: the value goes to whom the flow leads to, if it is bound to both. */
static void test_host_is_only_a_word(void **state)
{
	static const struct {
		const char *name, *address, *host;
		bool goes;
	} cases[] = {
		{"api.test", "192.0.2.1", "api.test", true},
		{"evil.test", "192.0.2.1", "api.test", false},
		{"api.test", "192.0.2.1", "evil.test", false},
		{NULL, "192.0.2.1", "api.test", false},
		{NULL, "192.0.2.7", "192.0.2.7", true},
		{"evil.test", "192.0.2.7", "192.0.2.7", false},
	};
	scoped(secrets) struct secrets *set = make();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped_str struct str in = {0};
		struct http_drive d = {.step = 1000};
		struct http_setup setup = {.tls = true,
			.verified = true,
			.name = cases[i].name,
			.address = cases[i].address,
			.port = 443,
			.body_limit = 1000,
			.secrets = set,
			.hooks = &http_drive_hooks,
			.arg = &d};

		http_machine_new(&setup, &d.machine);
		str_printf(
			&in, "GET / HTTP/1.1\r\nHost: %s\r\nX: " STAND_S "\r\n\r\n", cases[i].host);
		http_drive_send(&d, MACHINE_CLIENT, str_slice(&in));
		str_putc(&d.got[MACHINE_SERVER], '\0');
		assert_int_equal(strstr(d.got[MACHINE_SERVER].p, SHORT) != NULL, cases[i].goes);
		assert_int_equal(strstr(d.log.p, "misuse SHORT") != NULL, !cases[i].goes);
		http_drive_done(&d);
	}
}

/* A stand-in in a body on its way elsewhere: what completes it is not sent, the client reads why, the body that
 * was sent is told of as cut. */
static void test_misuse_in_body(void **state)
{
	static const char head[] =
		"POST /?q HTTP/1.1\r\nHost: other.test\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const char body[] =
		"5\r\nbegin\r\n9\r\nsk-ant-FA\r\n10\r\nKEfakeFAKE456/+y\r\n0\r\n\r\n";
	scoped(secrets) struct secrets *set = make();

	for (size_t step = 1; step < sizeof(body); step++) {
		struct http_setup setup = {.tls = true,
			.verified = true,
			.name = T("other.test"),
			.port = 443,
			.body_limit = 1000,
			.secrets = set,
			.hooks = &http_drive_hooks};
		struct http_drive d = {.step = step};

		setup.arg = &d;
		http_machine_new(&setup, &d.machine);
		http_drive_send(&d, MACHINE_CLIENT, slice_of(head));
		http_drive_send(&d, MACHINE_CLIENT, slice_of(body));
		str_putc(&d.got[MACHINE_SERVER], '\0');
		assert_null(strstr(d.got[MACHINE_SERVER].p, "sk-"));
		assert_null(strstr(d.got[MACHINE_SERVER].p, "0\r\n\r\n"));
		assert_true(slice_starts(
			str_slice(&d.got[MACHINE_CLIENT]), "HTTP/1.1 403 Forbidden\r\n"));
		assert_non_null(strstr(d.log.p, "misuse ONE other.test body\n"));
		assert_non_null(strstr(d.log.p,
			"error=a secret's stand-in was on its way to where it must not go\n"));
		assert_non_null(strstr(d.log.p,
			"refused 403 POST https://other.test/?q host=other.test [secret]"));
		assert_true(d.machine.ops->wants_end(d.machine.self, MACHINE_SERVER));
		http_drive_done(&d);
	}
}

static void test_passing(void **state)
{
	static const char request[] = "POST /%s HTTP/1.1\r\nHost: %s\r\nX: %s\r\n"
				      "Content-Length: %zu\r\n\r\n%s";
	static const struct {
		const char *name, *host, *path, *field, *body, *told; /* told: NULL where it goes */
		bool put;
	} cases[] = {
		{"model.test", "model.test", "", "", "as it is " STAND},
		{"model.test", "model.test", "", STAND, "", "misuse ONE model.test header"},
		{"model.test", "model.test", "?k=" STAND, "", "", "misuse ONE model.test url"},
		{"model.test", "model.test", "", "", STAND_2, "misuse TWO model.test body"},
		{"model.test", "model.test", "", "", STAND " " STAND_2,
			"misuse TWO model.test body"},
		{"other.test", "model.test", "", "", STAND, "misuse ONE model.test body"},
		{"model.test", "other.test", "", "", STAND, "misuse ONE other.test body"},
		{"x.wild.test", "x.wild.test", "", "", STAND, NULL, true}, /* bound, too */
	};
	scoped(secrets) struct secrets *set = make();

	assert_int_equal(secrets_passing(set, "model.test", 1), 1);
	assert_int_equal(secrets_passing(set, "api.test", 443), 0);
	assert_int_equal(secrets_passing(set, NULL, 443), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped_str struct str in = {0};
		struct http_drive d = {.step = 7};
		struct http_setup setup = {.tls = true,
			.verified = true,
			.name = cases[i].name,
			.port = 443,
			.body_limit = 1000,
			.secrets = set,
			.hooks = &http_drive_hooks,
			.arg = &d};

		http_machine_new(&setup, &d.machine);
		str_printf(&in, request, cases[i].path, cases[i].host, cases[i].field,
			strlen(cases[i].body), cases[i].body);
		http_drive_send(&d, MACHINE_CLIENT, str_slice(&in));
		if (!cases[i].told)
			http_drive_send(&d, MACHINE_SERVER,
				slice_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
		str_putc(&d.got[MACHINE_SERVER], '\0');
		assert_int_equal(strstr(d.log.p, "misuse") != NULL, cases[i].told != NULL);
		assert_true(!cases[i].told || strstr(d.log.p, cases[i].told));
		assert_int_equal(strstr(d.got[MACHINE_SERVER].p, VALUE) != NULL, cases[i].put);
		assert_int_equal(strstr(d.log.p, " stand_in=ONE\n") != NULL,
			!cases[i].told && !cases[i].put);
		http_drive_done(&d);
	}
}

/* What an agent reads: which one, where, where it may go, what to do. */
static void test_words(void **state)
{
	static const struct {
		const char *request, *words;
		bool verified;
	} cases[] = {
		{"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 27\r\n\r\n" STAND,
			"The stand-in of the secret ONE (what that variable holds in this "
			"sandbox) is in the request's body. It may go to api.test, "
			"*.wild.test:443 only. Leave it out of the body. If it is needed here, the "
			"user can bind the secret to this host (--secret ONE@HOST) or let its "
			"stand-in pass in bodies (,pass=HOST)",
			true},
		{"GET / HTTP/1.1\r\nHost: api.test\r\nX: " STAND "\r\n\r\n",
			"The stand-in of the secret ONE is in the request's header. Its value may "
			"go to this host, but only inside TLS whose certificate was verified: use "
			"https"},
	};
	scoped(secrets) struct secrets *set = make();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_drive d = {.step = 1000};
		struct http_setup setup = {.verified = cases[i].verified,
			.port = 80,
			.address = "api.test",
			.secrets = set,
			.hooks = &http_drive_hooks,
			.arg = &d};

		http_machine_new(&setup, &d.machine);
		http_drive_send(&d, MACHINE_CLIENT, slice_of(cases[i].request));
		if (!strstr(d.log.p, cases[i].words))
			fail_msg("%s", d.log.p);
		http_drive_done(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_basic),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_back_in_pieces),
		cmocka_unit_test(test_put_and_find_in_pieces),
		cmocka_unit_test(test_no_delay),
		cmocka_unit_test(test_refused_lists),
		cmocka_unit_test(test_exchanges),
		cmocka_unit_test(test_host_is_only_a_word),
		cmocka_unit_test(test_misuse_in_body),
		cmocka_unit_test(test_passing),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
