/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/dns.h"
#include "util/scoped.h"

#define BYTES(literal) \
	{ \
		literal, sizeof(literal) - 1 \
	}
#define N(array)                    (sizeof(array) / sizeof((array)[0]))

#define HEAD(flags, qd, an, ns, ar) "\xab\xcd" flags "\0" qd "\0" an "\0" ns "\0" ar
#define ASK                         HEAD("\1\0", "\1", "\0", "\0", "\0")
#define ASK_EDNS                    HEAD("\1\0", "\1", "\0", "\0", "\1")
#define A_IN                        "\0\1\0\1"
#define NAME                        "\3www\7Example\3org\0"
#define L63 \
	"\x3f" \
	"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"

static const struct {
	const char *what;
	struct slice in;
	int r;
	enum dns_rcode fault;
	const char *host; /* "": there was no name to read */
	bool is_host;
} queries[] = {
	{"plain", BYTES(ASK NAME A_IN), 0, DNS_NOERROR, "www.example.org", true},
	{"edns", BYTES(ASK_EDNS NAME A_IN "\0\0\x29\x10\0\0\0\x80\0\0\0"), 0, DNS_NOERROR,
		"www.example.org", true},
	{"edns with a cookie", BYTES(ASK_EDNS NAME A_IN "\0\0\x29\x10\0\0\0\0\0\0\6\0\x0a\0\2zz"),
		0, DNS_NOERROR, "www.example.org", true},
	{"root", BYTES(ASK "\0" A_IN), 0, DNS_NOERROR, ".", false},
	{"underscore", BYTES(ASK "\5_sip1\1a\0" A_IN), 0, DNS_NOERROR, "_sip1.a", true},
	{"dot in a label", BYTES(ASK "\3a.b\1c\0" A_IN), 0, DNS_NOERROR, "a\\046b.c", false},
	{"NUL in a label", BYTES(ASK "\3a\0b\1c\0" A_IN), 0, DNS_NOERROR, "a\\000b.c", false},
	{"address", BYTES(ASK "\4\x30x7f\1\x31\0" A_IN), 0, DNS_NOERROR, "0x7f.1", false},
	{"star", BYTES(ASK "\1*\1c\0" A_IN), 0, DNS_NOERROR, "\\042.c", false},
	{"high byte", BYTES(ASK "\2\xc3\xa9\1c\0" A_IN), 0, DNS_NOERROR, "\\195\\169.c", false},
	{"longest name",
		BYTES(ASK L63 L63 L63 "\x3d"
				      "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
				      "zzzzzzzzzzzzzzzz\0" A_IN),
		0, DNS_NOERROR, NULL, true},
	{"one too long",
		BYTES(ASK L63 L63 L63 "\x3e"
				      "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
				      "zzzzzzzzzzzzzzzzz\0" A_IN),
		0, DNS_FORMERR, "", false},
	{"label of 64",
		BYTES(ASK
			"\x40"
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\0" A_IN),
		0, DNS_FORMERR, "", false},
	{"pointer to itself", BYTES(ASK "\xc0\x0c" A_IN), 0, DNS_FORMERR, "", false},
	{"pointer into the head", BYTES(ASK "\1a\xc0\x02" A_IN), 0, DNS_FORMERR, "", false},
	{"label past the end", BYTES(ASK "\3ww"), 0, DNS_FORMERR, "", false},
	{"no type", BYTES(ASK NAME "\0"), 0, DNS_FORMERR, "", false},
	{"no class", BYTES(ASK NAME "\0\1\0"), 0, DNS_FORMERR, "", false},
	{"no root", BYTES(ASK "\3www"), 0, DNS_FORMERR, "", false},
	{"bytes behind", BYTES(ASK NAME A_IN "x"), 0, DNS_FORMERR, "www.example.org", true},
	{"no question", BYTES(HEAD("\1\0", "\0", "\0", "\0", "\0")), 0, DNS_FORMERR, "", false},
	{"two questions", BYTES(HEAD("\1\0", "\2", "\0", "\0", "\0") NAME A_IN NAME A_IN), 0,
		DNS_FORMERR, "", false},
	{"brings an answer", BYTES(HEAD("\1\0", "\1", "\1", "\0", "\0") NAME A_IN), 0, DNS_FORMERR,
		"", false},
	{"two at the end", BYTES(HEAD("\1\0", "\1", "\0", "\0", "\2") NAME A_IN), 0, DNS_FORMERR,
		"", false},
	{"cut", BYTES(HEAD("\3\0", "\1", "\0", "\0", "\0") NAME A_IN), 0, DNS_FORMERR, "", false},
	{"update", BYTES(HEAD("\x28\0", "\1", "\0", "\0", "\0") NAME A_IN), 0, DNS_NOTIMP, "",
		false},
	{"chaos", BYTES(ASK NAME "\0\x10\0\3"), 0, DNS_REFUSED, "www.example.org", true},
	{"edns missing", BYTES(ASK_EDNS NAME A_IN), 0, DNS_FORMERR, "www.example.org", true},
	{"edns version 1", BYTES(ASK_EDNS NAME A_IN "\0\0\x29\x10\0\0\1\0\0\0\0"), 0, DNS_BADVERS,
		"www.example.org", true},
	{"edns of a name", BYTES(ASK_EDNS NAME A_IN "\1a\0\0\x29\x10\0\0\0\0\0\0\0"), 0,
		DNS_FORMERR, "www.example.org", true},
	{"edns option past the end",
		BYTES(ASK_EDNS NAME A_IN "\0\0\x29\x10\0\0\0\0\0\0\6\0\x0a\0\3zz"), 0, DNS_FORMERR,
		"www.example.org", true},
	{"tsig", BYTES(ASK_EDNS NAME A_IN "\0\0\xfa\0\xff\0\0\0\0\0\0"), 0, DNS_FORMERR,
		"www.example.org", true},
	{"an answer", BYTES(HEAD("\x81\x80", "\1", "\0", "\0", "\0") NAME A_IN), -EBADMSG},
	{"half a head", BYTES("\xab\xcd\1\0\0\1\0\0\0\0\0"), -EBADMSG},
	{"nothing", BYTES(""), -EBADMSG},
	{"not DNS: the bit of answers happens to be off", BYTES("GET / HTTP/1.1\r\n\r\n"), 0,
		DNS_NOTIMP, "", false},
};

static void test_query(void **state)
{
	static struct dns_query query;

	for (size_t i = 0; i < N(queries); i++) {
		int r = dns_query_read(queries[i].in, &query);

		if (r != queries[i].r || (r == 0 && query.fault != queries[i].fault))
			fail_msg("%s: %d, fault %d", queries[i].what, r, query.fault);
		if (r < 0)
			continue;
		if (queries[i].host)
			assert_string_equal(query.host, queries[i].host);
		if (query.is_host != queries[i].is_host)
			fail_msg("%s: is_host %d", queries[i].what, query.is_host);
	}
}

static void test_every_prefix(void **state)
{
	static const struct slice whole =
		BYTES(ASK_EDNS NAME A_IN "\0\0\x29\x10\0\0\0\0\0\0\6\0\x0a\0\2zz");
	static struct dns_query query;

	for (size_t len = 0; len < whole.len; len++) {
		scoped_mem char *exact = malloc(len); /* so that one byte too far is seen */
		int r;

		memcpy(exact, whole.p, len);
		r = dns_query_read((struct slice){.p = exact, .len = len}, &query);
		assert_int_equal(r, len < 12 ? -EBADMSG : 0);
		assert_true(r < 0 || query.fault == DNS_FORMERR);
	}
}

static void expect_bytes(const struct str *got, struct slice want)
{
	assert_int_equal(got->len, want.len);
	assert_memory_equal(got->p, want.p, want.len);
}

/* Upstream sees no case, no option and no odd flag of the client's. */
static void test_query_write(void **state)
{
	static const struct slice
		in = BYTES(HEAD("\1\x50", "\1", "\0", "\0", "\1") NAME A_IN
			"\0\0\x29\x10\0\0\0\x80\0\0\6\0\x0a\0\2zz"),
		want = BYTES("\x12\x34\1\x30\0\1\0\0\0\0\0\1\3www\7example\3org\0" A_IN
			     "\0\0\x29\4\xd0\0\0\x80\0\0\0"),
		plain = BYTES("\x12\x34\1\x30\0\1\0\0\0\0\0\0\3www\7example\3org\0" A_IN);
	scoped_str struct str out = {0};
	static struct dns_query query;

	assert_int_equal(dns_query_read(in, &query), 0);
	dns_query_write(&out, &query, 0x1234, true);
	expect_bytes(&out, want);
	str_reset(&out);
	dns_query_write(&out, &query, 0x1234, false);
	expect_bytes(&out, plain);
}

#define ANSWER(an, ns, ar)    "\x12\x34\x81\x80\0\1\0" an "\0" ns "\0" ar
#define TTL                   "\0\0\0\x3c"
#define ADDRESS(owner, last)  owner A_IN TTL "\0\4\xc0\0\2" last
#define ALIAS(owner, len, to) owner "\0\5\0\1" TTL "\0" len to
#define SELF                  "\xc0\x0c"

static const struct {
	const char *what;
	uint16_t type;
	struct slice in;
	int r;
	const char *text; /* records, one a line */
	size_t n_chain;
} answers[] = {
	{"address", DNS_A, BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ADDRESS(SELF, "\1")), 0,
		"192.0.2.1\n", 1},
	{"other case", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") "\3WWW\7eXAMPLE\3org\0" A_IN ADDRESS(
			"\3wWw\xc0\x10", "\1")),
		0, "192.0.2.1\n", 1},
	{"v6", DNS_AAAA,
		BYTES(ANSWER("\1", "\0", "\0") NAME "\0\x1c\0\1" SELF "\0\x1c\0\1" TTL "\0\x10"
						    "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"),
		0, "2001:db8::1\n", 1},
	{"chain, out of order, and what nobody asked for", DNS_A,
		BYTES(ANSWER("\6", "\0", "\0") NAME A_IN ADDRESS("\1c\0", "\1") ALIAS(
			"\1b\0", "\3", "\1c\0") ADDRESS("\4evil\0", "\2") ALIAS(SELF, "\3", "\1b\0")
				ADDRESS("\1b\0", "\3") ADDRESS(SELF, "\4")),
		0, "192.0.2.1\nCNAME c\nCNAME b\n", 3},
	{"alias that leads nowhere", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ALIAS(SELF, "\3", "\1b\0")), 0,
		"CNAME b\n", 2},
	{"two aliases of one name", DNS_A,
		BYTES(ANSWER("\4", "\0", "\0") NAME A_IN ALIAS(SELF, "\3", "\1b\0") ALIAS(
			SELF, "\3", "\1c\0") ADDRESS("\1b\0", "\1") ADDRESS("\1c\0", "\2")),
		0, "CNAME b\n192.0.2.1\n", 2},
	{"alias of itself", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ALIAS(SELF, "\2", SELF)), -EBADMSG},
	{"circle", DNS_A,
		BYTES(ANSWER("\2", "\0", "\0") NAME A_IN ALIAS(SELF, "\3", "\1b\0")
				ALIAS("\1b\0", "\2", SELF)),
		-EBADMSG},
	{"the alias itself was asked for", DNS_CNAME,
		BYTES(ANSWER("\1", "\0", "\0") NAME "\0\5\0\1" ALIAS(SELF, "\3", "\1b\0")), 0,
		"CNAME b\n", 1},
	{"additional addresses", DNS_A,
		BYTES(ANSWER("\0", "\0", "\1") NAME A_IN ADDRESS(SELF, "\1")), 0, "", 1},
	{"no such name", DNS_A,
		BYTES("\x12\x34\x81\x83\0\1\0\0\0\1\0\0" NAME A_IN "\3org\0\0\6\0\1" TTL
		      "\0\x1a\1m\0\1h\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5"),
		0, "SOA m h 1 2 3 4 5\n", 1},
	{"mail", DNS_MX,
		BYTES(ANSWER("\1", "\0", "\0") NAME "\0\x0f\0\1" SELF "\0\x0f\0\1" TTL
						    "\0\5\0\x0a\1m\0"),
		0, "MX 10 m\n", 1},
	{"text", DNS_TXT,
		BYTES(ANSWER("\1", "\0", "\0") NAME "\0\x10\0\1" SELF "\0\x10\0\1" TTL
						    "\0\x08\3a\"\n\3b\\c"),
		0, "TXT \"a\\\"\\010\" \"b\\\\c\"\n", 1},
	{"strings among integers", 35,
		BYTES(ANSWER("\1", "\0", "\0") NAME "\0\x23\0\1" SELF "\0\x23\0\1" TTL
						    "\0\x0c\0\1\0\2\1a\1b\0\1c\0"),
		0, "NAPTR 1 2 \"a\" \"b\" \"\" c\n", 1},
	{"more strings than are shown", DNS_TXT,
		BYTES(ANSWER("\1", "\0", "\0") NAME
			"\0\x10\0\1" SELF "\0\x10\0\1" TTL "\0\x21"
			"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
		0,
		"TXT \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" "
		"\"\" \"\" \"\" "
		"\"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" ...\n",
		1},
	{"unknown type", 65399,
		BYTES(ANSWER("\1", "\0", "\0") NAME "\xff\x77\0\1" SELF "\xff\x77\0\1" TTL
						    "\0\2\xc0\x0c"),
		0, "TYPE65399 c00c\n", 1},
	{"string past its record", DNS_TXT,
		BYTES(ANSWER("\1", "\0", "\0") NAME "\0\x10\0\1" SELF "\0\x10\0\1" TTL "\0\2\3abc"),
		-EBADMSG},
	{"address of three bytes", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN SELF A_IN TTL "\0\3\xc0\0\2"), -EBADMSG},
	{"address of five bytes", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN SELF A_IN TTL "\0\5\xc0\0\2\1\1"),
		-EBADMSG},
	{"alias longer than its record", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ALIAS(SELF, "\2", "\1b\0")), -EBADMSG},
	{"alias shorter than its record", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ALIAS(SELF, "\4", "\1b\0\0")), -EBADMSG},
	{"record missing", DNS_A, BYTES(ANSWER("\2", "\0", "\0") NAME A_IN ADDRESS(SELF, "\1")),
		-EBADMSG},
	{"data past the end", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN SELF A_IN TTL "\0\4\xc0\0\2"), -EBADMSG},
	{"owner points at itself", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ADDRESS("\xc0\x21", "\1")), -EBADMSG},
	{"owner points forward", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ADDRESS("\xc0\x24", "\1")), -EBADMSG},
	{"owner grows by its own pointer", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ADDRESS("\1a\xc0\x21", "\1")), -EBADMSG},
	{"odd label", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN ADDRESS("\x81"
								 "a\0",
			"\1")),
		-EBADMSG},
	{"options in the answer", DNS_A,
		BYTES(ANSWER("\1", "\0", "\0") NAME A_IN "\0\0\x29\x10\0\0\0\0\0\0\0"), -EBADMSG},
	{"another id", DNS_A, BYTES("\x12\x35\x81\x80\0\1\0\0\0\0\0\0" NAME A_IN), -ENOMSG},
	{"a query", DNS_A, BYTES("\x12\x34\1\0\0\1\0\0\0\0\0\0" NAME A_IN), -ENOMSG},
	{"another name", DNS_A, BYTES(ANSWER("\0", "\0", "\0") "\3wwx\7Example\3org\0" A_IN),
		-ENOMSG},
	{"another type", DNS_AAAA, BYTES(ANSWER("\0", "\0", "\0") NAME A_IN), -ENOMSG},
	{"no question", DNS_A, BYTES("\x12\x34\x81\x80\0\0\0\0\0\0\0\0"), -EBADMSG},
	{"no question, a fault", DNS_A, BYTES("\x12\x34\x81\x82\0\0\0\0\0\0\0\0"), 0, "", 1},
	{"short", DNS_A, BYTES("\x12\x34\x81\x80\0"), -EBADMSG},
	{"cut: what came is not looked at", DNS_A,
		BYTES("\x12\x34\x83\x80\0\1\0\2\0\0\0\0" NAME A_IN "\xc0"), 0, "", 0},
};

static void ask(struct dns_query *query, uint16_t type)
{
	static const struct slice in = BYTES(ASK NAME A_IN);

	assert_int_equal(dns_query_read(in, query), 0);
	query->type = type;
}

static void add_texts(struct str *out, const struct dns_answer *answer)
{
	str_puts(out, "");
	for (size_t k = 0; k < answer->n_records; k++) {
		dns_record_text(answer, &answer->records[k], out);
		str_putc(out, '\n');
	}
}

static void test_answer(void **state)
{
	static struct dns_query query;
	static struct dns_answer answer;

	for (size_t i = 0; i < N(answers); i++) {
		scoped_mem char *exact = malloc(answers[i].in.len);
		scoped_str struct str text = {0}, again = {0};
		int r;

		memcpy(exact, answers[i].in.p, answers[i].in.len);
		ask(&query, answers[i].type);
		r = dns_answer_read((struct slice){.p = exact, .len = answers[i].in.len}, &query,
			0x1234, &answer);
		if (r != answers[i].r)
			fail_msg("%s: %d", answers[i].what, r);
		if (r < 0)
			continue;
		add_texts(&text, &answer);
		assert_string_equal(text.p, answers[i].text);
		assert_int_equal(answer.n_chain, answers[i].n_chain);
		dns_reply_answer(&again, &query, &answer, 0, DNS_MESSAGE_MAX);
	}
}

/* What the client gets: its own name's case and id, only the chain, names pointed at, nothing additional. */
static void test_reply_answer(void **state)
{
	static const struct slice in = BYTES(ANSWER(
					  "\4", "\0", "\1") "\3www\7example\3org\0" A_IN ALIAS(SELF,
					  "\3", "\1b\0") ADDRESS("\1b\0", "\1")
						  ADDRESS("\4evil\0", "\2") ADDRESS("\xc0\x2d",
							  "\3") "\0\0\x29\4\xd0\0\0\0\0\0\0"),
				  want = BYTES("\xab\xcd\x81\x80\0\1\0\3\0\0\0\0" NAME A_IN ALIAS(
					  SELF, "\3", "\1b\0") ADDRESS("\xc0\x2d", "\1")
						  ADDRESS("\xc0\x2d", "\3")),
				  cut = BYTES("\xab\xcd\x83\x80\0\1\0\0\0\0\0\0" NAME A_IN);
	scoped_str struct str out = {0};
	static struct dns_query query;
	static struct dns_answer answer;

	ask(&query, DNS_A);
	assert_int_equal(dns_answer_read(in, &query, 0x1234, &answer), 0);
	assert_int_equal(answer.ttl, 60);
	dns_reply_answer(&out, &query, &answer, 0, want.len);
	expect_bytes(&out, want);
	str_reset(&out);
	dns_reply_answer(&out, &query, &answer, 0, want.len - 1);
	expect_bytes(&out, cut);
}

/* An answer that is one HTTPS record with these keys. */
#define HTTPS_IN "\0\x41\0\1"
#define SERVICE(keys_len, keys) \
	ANSWER("\1", "\0", "\0") NAME HTTPS_IN SELF HTTPS_IN TTL "\0" keys_len "\0\1\0" keys
#define ALPN "\0\1\0\3\2h2"
#define HINT "\0\4\0\4\xc0\0\2\1"
#define ECH  "\0\5\0\2zz"

static void test_services(void **state)
{
	static const struct {
		const char *what;
		unsigned strip;
		struct slice in;
		const char *text;
	} cases[] = {
		{"as it is", 0, BYTES(SERVICE("\x18", ALPN HINT ECH)),
			"HTTPS 1 . 000100030268320004000"
			"4c0000201000500027a7a\n"},
		{"stripped", DNS_STRIP_ECH, BYTES(SERVICE("\x18", ALPN HINT ECH)),
			"HTTPS 1 . 00010003026832\n"},
		{"gone", DNS_STRIP_SERVICES, BYTES(SERVICE("\x18", ALPN HINT ECH)), ""},
		{"needs it", DNS_STRIP_ECH, BYTES(SERVICE("\x16", "\0\0\0\2\0\5" ALPN ECH)), ""},
		{"needs another", DNS_STRIP_ECH, BYTES(SERVICE("\x16", "\0\0\0\2\0\1" ALPN ECH)),
			"HTTPS 1 . 00000002000100010003026832\n"},
		{"out of order", DNS_STRIP_ECH, BYTES(SERVICE("\x10", ECH ALPN)), ""},
		{"twice", DNS_STRIP_ECH, BYTES(SERVICE("\x0f", ECH ECH)), ""},
		{"key past the end", DNS_STRIP_ECH, BYTES(SERVICE("\x08", "\0\5\0\2z")), ""},
		{"half a key", DNS_STRIP_ECH, BYTES(SERVICE("\x05", "\0\5")), ""},
	};
	static struct dns_query query;
	static struct dns_answer answer;

	ask(&query, DNS_HTTPS);
	for (size_t i = 0; i < N(cases); i++) {
		scoped_str struct str out = {0}, text = {0};

		if (dns_answer_read(cases[i].in, &query, 0x1234, &answer) < 0)
			fail_msg("%s", cases[i].what);
		dns_reply_answer(&out, &query, &answer, cases[i].strip, DNS_MESSAGE_MAX);
		if (dns_answer_read(str_slice(&out), &query, 0xabcd, &answer) < 0)
			fail_msg("%s: what was written cannot be read", cases[i].what);
		add_texts(&text, &answer);
		assert_string_equal(text.p, cases[i].text);
	}
}

static void test_replies(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 198, 18, 0, 1}, v6[16] = {0xfd, [15] = 1};
	static const struct slice in = BYTES(ASK_EDNS NAME A_IN "\0\0\x29\4\xd0\0\0\x80\0\0\0"),
				  nx = BYTES("\xab\xcd\x81\x83\0\1\0\0\0\0\0\1" NAME A_IN
					     "\0\0\x29\4\xd0\0\0\x80\0\0\0"),
				  version = BYTES("\xab\xcd\x81\x80\0\1\0\0\0\0\0\1" NAME A_IN
						  "\0\0\x29\4\xd0\1\0\x80\0\0\0"),
				  one = BYTES("\xab\xcd\x81\x80\0\1\0\1\0\0\0\1" NAME A_IN SELF A_IN
					      "\0\0\0\5\0\4\xc6\x12\0\1"
					      "\0\0\x29\4\xd0\0\0\x80\0\0\0"),
				  none = BYTES("\xab\xcd\x81\x80\0\1\0\0\0\0\0\1" NAME A_IN
					       "\0\0\x29\4\xd0\0\0\x80\0\0\0"),
				  bare = BYTES("\xab\xcd\xa8\x84\0\0\0\0\0\0\0\0"),
				  update = BYTES(HEAD("\x28\0", "\1", "\0", "\0", "\0") NAME A_IN);
	scoped_str struct str out = {0};
	static struct dns_query query;

	assert_int_equal(dns_query_read(in, &query), 0);
	assert_int_equal(query.udp_size, 1232);
	dns_reply_empty(&out, &query, DNS_NXDOMAIN);
	expect_bytes(&out, nx);
	str_reset(&out);
	dns_reply_empty(&out, &query, DNS_BADVERS);
	expect_bytes(&out, version);
	str_reset(&out);
	dns_reply_address(&out, &query, v4, 5);
	expect_bytes(&out, one);
	str_reset(&out);
	dns_reply_address(&out, &query, v6, 5);
	expect_bytes(&out, none);
	str_reset(&out);
	/* Without EDNS there is no room for such a code. */
	ask(&query, DNS_A);
	dns_reply_empty(&out, &query, DNS_BADVERS);
	assert_int_equal(out.p[3] & 15, DNS_SERVFAIL);
	str_reset(&out);
	assert_int_equal(dns_query_read(update, &query), 0);
	dns_reply_empty(&out, &query, query.fault);
	expect_bytes(&out, bare);
}

/* Who wants signatures gets them; who does not, does not; a TTL is neither negative nor longer than a day. */
static void test_signed(void **state)
{
#define SIG(owner, what) owner "\0\x2e\0\1" TTL "\0\4\0" what "zz"
	static const struct slice
		plain = BYTES(ASK NAME A_IN),
		signature_wanted = BYTES(ASK_EDNS NAME A_IN "\0\0\x29\4\xd0\0\0\x80\0\0\0"),
		in = BYTES("\x12\x34\x81\xa0\0\1\0\3\0\2\0\0" NAME A_IN ADDRESS(SELF, "\1") SIG(
			SELF, "\1") SIG("\1x\0",
			"\1") "\0\0\6\0\1" TTL
			      "\0\x16\0\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5" SIG("\0", "\6"));
	static const struct {
		const struct slice *ask;
		const char *text;
		unsigned flags;
	} cases[] = {
		{&plain, "192.0.2.1\nSOA . . 1 2 3 4 5\n", 0},
		{&signature_wanted,
			"192.0.2.1\nRRSIG 00017a7a\nSOA . . 1 2 3 4 5\nRRSIG 00067a7a\n", 0x20},
	};
	static struct dns_query query;
	static struct dns_answer answer;

	for (size_t i = 0; i < N(cases); i++) {
		scoped_str struct str out = {0}, text = {0};

		assert_int_equal(dns_query_read(*cases[i].ask, &query), 0);
		assert_int_equal(dns_answer_read(in, &query, 0x1234, &answer), 0);
		dns_reply_answer(&out, &query, &answer, DNS_STRIP_ECH, DNS_MESSAGE_MAX);
		assert_int_equal((unsigned char)out.p[3] & 0x20, cases[i].flags);
		assert_int_equal(dns_answer_read(str_slice(&out), &query, 0xabcd, &answer), 0);
		add_texts(&text, &answer);
		assert_string_equal(text.p, cases[i].text);
	}
}

static void test_ttl(void **state)
{
	static const struct {
		struct slice in;
		uint32_t ttl;
	} cases[] = {
		{BYTES(ANSWER("\1", "\0", "\0") NAME A_IN SELF A_IN "\0\0\0\7\0\4zzzz"), 7},
		{BYTES(ANSWER("\1", "\0", "\0") NAME A_IN SELF A_IN "\x7f\xff\xff\xff\0\4zzzz"),
			86400},
		{BYTES(ANSWER("\1", "\0", "\0") NAME A_IN SELF A_IN "\x80\0\0\1\0\4zzzz"), 0},
		{BYTES(ANSWER("\2", "\0", "\0") NAME A_IN ALIAS(
			 SELF, "\3", "\1b\0") "\1b\0" A_IN "\0\0\0\7\0\4zzzz"),
			7},
	};
	static struct dns_query query;
	static struct dns_answer answer;

	for (size_t i = 0; i < N(cases); i++) {
		ask(&query, DNS_A);
		assert_int_equal(dns_answer_read(cases[i].in, &query, 0x1234, &answer), 0);
		assert_int_equal(answer.ttl, cases[i].ttl);
	}
}

/* More records than are kept are counted, and all that are kept fit. */
static void test_many(void **state)
{
	static const struct slice question = BYTES(NAME A_IN), address = BYTES(ADDRESS(SELF, "\1"));
	scoped_str struct str in = {0}, out = {0};
	static struct dns_query query;
	static struct dns_answer answer;

	str_add(&in, "\x12\x34\x81\x80\0\1\x03\xe8\0\0\0\0", 12);
	str_add(&in, question.p, question.len);
	for (int i = 0; i < 1000; i++)
		str_add(&in, address.p, address.len);
	ask(&query, DNS_A);
	assert_int_equal(dns_answer_read(str_slice(&in), &query, 0x1234, &answer), 0);
	assert_int_equal(answer.n_records, DNS_RECORDS_MAX);
	assert_int_equal(answer.n_dropped, 1000 - DNS_RECORDS_MAX);
	dns_reply_answer(&out, &query, &answer, 0, DNS_MESSAGE_MAX);
	assert_int_equal(out.len, 12 + question.len + DNS_RECORDS_MAX * address.len);
}

/* The alias that counts is behind n of other names. */
static size_t chain_behind(int n)
{
	static const struct slice question = BYTES(NAME A_IN),
				  other = BYTES(ALIAS("\1x\0", "\3", "\1y\0")),
				  alias = BYTES(ALIAS(SELF, "\3", "\1b\0"));
	scoped_str struct str in = {0};
	static struct dns_query query;
	static struct dns_answer answer;

	str_add(&in, "\x12\x34\x81\x80\0\1\0\0\0\0\0\0", 12);
	in.p[7] = (char)(n + 1);
	str_add(&in, question.p, question.len);
	for (int i = 0; i < n; i++)
		str_add(&in, other.p, other.len);
	str_add(&in, alias.p, alias.len);
	ask(&query, DNS_A);
	assert_int_equal(dns_answer_read(str_slice(&in), &query, 0x1234, &answer), 0);
	return answer.n_chain;
}

static void test_many_aliases(void **state)
{
	assert_int_equal(chain_behind(63), 2);
	assert_int_equal(chain_behind(64), 1);
}

static void test_names(void **state)
{
	assert_string_equal(dns_type_name(65), "HTTPS");
	assert_string_equal(dns_type_name(65399), "TYPE65399");
	assert_string_equal(dns_rcode_name(DNS_NXDOMAIN), "NXDOMAIN");
	assert_string_equal(dns_rcode_name((enum dns_rcode)23), "RCODE23");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_query_write),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_reply_answer),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_signed),
		cmocka_unit_test(test_ttl),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_many_aliases),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
