/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/tls_hello.h"

#define BYTES(literal) \
	{ \
		literal, sizeof(literal) - 1 \
	}
#define N(array)                  (sizeof(array) / sizeof((array)[0]))

#define SNI(ext, list, len, name) "\0\0\0" ext "\0" list "\0\0" len name
#define EXAMPLE                   SNI("\x10", "\x0e", "\x0b", "example.org")
#define H2                        "\0\x10\0\x0e\0\x0c\2h2\x08http/1.1"
#define GREASE                    "\x5a\x5a\0\1\0"
#define ECH                       "\xfe\x0d\0\2zz"

/* A hello with these extensions. */
static const struct {
	const char *what;
	struct slice extensions;
	enum tls_hello_result result;
	const char *host, *why;
	enum url_host_kind kind;
	bool ech, h2;
} cases[] = {
	{"name", BYTES(EXAMPLE), TLS_HELLO_NAME, "example.org"},
	{"name, protocols, odd values", BYTES(GREASE H2 EXAMPLE "\x8a\x8a\0\0"), TLS_HELLO_NAME,
		"example.org", .h2 = true},
	{"capitals and a final dot", BYTES(SNI("\x11", "\x0f", "\x0c", "EXAMPLE.org.")),
		TLS_HELLO_NAME, "example.org"},
	{"an address", BYTES(SNI("\x0b", "\x09", "\x06", "0x7f.1")), TLS_HELLO_NAME, "127.0.0.1",
		.kind = URL_IPV4},
	{"no name", BYTES(H2), TLS_HELLO_NO_NAME, .h2 = true},
	{"only odd values", BYTES(GREASE), TLS_HELLO_NO_NAME},
	{"hidden hello", BYTES(EXAMPLE ECH), TLS_HELLO_NAME, "example.org", .ech = true},
	{"hidden name of old", BYTES("\xff\xce\0\0"), TLS_HELLO_NO_NAME, .ech = true},
	{"two names in one list", BYTES("\0\0\0\x0c\0\x0a\0\0\2ab\0\0\2cd"), TLS_HELLO_MALFORMED,
		.why = "it names more than one server"},
	{"two lists", BYTES(EXAMPLE EXAMPLE), TLS_HELLO_MALFORMED,
		.why = "it has an extension twice"},
	{"one odd value twice", BYTES(GREASE GREASE), TLS_HELLO_MALFORMED,
		.why = "it has an extension twice"},
	{"a name of another type before it", BYTES("\0\0\0\x0c\0\x0a\1\0\2ab\0\0\2cd"),
		TLS_HELLO_MALFORMED, .why = "its list of server names cannot be read"},
	{"empty list", BYTES("\0\0\0\2\0\0"), TLS_HELLO_MALFORMED,
		.why = "its list of server names cannot be read"},
	{"no list", BYTES("\0\0\0\0"), TLS_HELLO_MALFORMED,
		.why = "its list of server names cannot be read"},
	{"bytes behind the list", BYTES("\0\0\0\x08\0\5\0\0\2abz"), TLS_HELLO_MALFORMED,
		.why = "its list of server names cannot be read"},
	{"name longer than its list", BYTES("\0\0\0\7\0\5\0\0\3ab"), TLS_HELLO_MALFORMED,
		.why = "its list of server names cannot be read"},
	{"empty name", BYTES(SNI("\5", "\3", "\0", "")), TLS_HELLO_MALFORMED,
		.why = "its server name is no host name"},
	{"NUL in the name", BYTES(SNI("\x08", "\6", "\3", "a\0b")), TLS_HELLO_MALFORMED,
		.why = "its server name is no host name"},
	{"space in the name", BYTES(SNI("\x08", "\6", "\3", "a b")), TLS_HELLO_MALFORMED,
		.why = "its server name is no host name"},
	{"a port in the name", BYTES(SNI("\x08", "\6", "\3", "a:1")), TLS_HELLO_MALFORMED,
		.why = "its server name is no host name"},
	{"protocol of no length", BYTES("\0\x10\0\3\0\1\0"), TLS_HELLO_MALFORMED,
		.why = "its list of protocols cannot be read"},
	{"protocol past its list", BYTES("\0\x10\0\4\0\2\2h"), TLS_HELLO_MALFORMED,
		.why = "its list of protocols cannot be read"},
	{"no protocols", BYTES("\0\x10\0\2\0\0"), TLS_HELLO_MALFORMED,
		.why = "its list of protocols cannot be read"},
	{"extension past the end", BYTES(GREASE "\1\2\0\4zzz"), TLS_HELLO_MALFORMED,
		.why = "an extension runs past its end"},
	{"half an extension", BYTES(GREASE "\1\2\0"), TLS_HELLO_MALFORMED,
		.why = "an extension runs past its end"},
};

static void put(struct str *out, size_t v, size_t bytes)
{
	while (bytes-- > 0)
		str_putc(out, (char)(v >> 8 * bytes & 0xff));
}

static void put_message(struct str *out, struct slice extensions)
{
	static const struct slice fixed = BYTES("\3\3"
						"0123456789abcdef0123456789abcdef"
						"\2id\0\4\x5a\x5a\x13\1\1\0");

	put(out, 1, 1);
	put(out, fixed.len + 2 + extensions.len, 3);
	str_add(out, fixed.p, fixed.len);
	put(out, extensions.len, 2);
	str_add(out, extensions.p, extensions.len);
}

static void put_record(struct str *out, const char *p, size_t len)
{
	str_add(out, "\x16\3\1", 3);
	put(out, len, 2);
	str_add(out, p, len);
}

/* In records of so many bytes, given so many at a time. */
static void feed(struct tls_hello *hello, struct slice message, size_t record, size_t step)
{
	scoped_str struct str out = {0};

	for (size_t at = 0; at < message.len; at += record)
		put_record(&out, message.p + at,
			message.len - at < record ? message.len - at : record);
	for (size_t at = 0; at < out.len; at += step) {
		struct slice part = {out.p + at, out.len - at < step ? out.len - at : step};

		if (tls_hello_feed(hello, part) != TLS_HELLO_MORE)
			return;
	}
}

static void expect(size_t i, size_t record, size_t step)
{
	scoped_str struct str message = {0};
	struct tls_hello hello = {0};

	put_message(&message, cases[i].extensions);
	feed(&hello, str_slice(&message), record, step);
	if (hello.result != cases[i].result)
		fail_msg("%s, %zu, %zu: %d %s", cases[i].what, record, step, hello.result,
			hello.why ? hello.why : "");
	if (hello.result == TLS_HELLO_NAME) {
		assert_string_equal(hello.host.text, cases[i].host);
		assert_int_equal(hello.host.kind, cases[i].kind);
	}
	if (hello.result == TLS_HELLO_MALFORMED)
		assert_string_equal(hello.why, cases[i].why);
	assert_int_equal(hello.ech, cases[i].ech);
	assert_int_equal(tls_hello_offers(&hello, "h2"), cases[i].h2);
	assert_false(tls_hello_offers(&hello, "h"));
	tls_hello_done(&hello);
}

static void test_cases(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 5, 20, 16384};

	for (size_t i = 0; i < N(cases); i++)
		for (size_t k = 0; k < N(sizes); k++) {
			expect(i, sizes[k], 16384);
			expect(i, 16384, sizes[k]);
			expect(i, sizes[k], sizes[k]);
		}
}

static void test_bytes(void **state)
{
	static const struct {
		const char *what;
		struct slice in;
		enum tls_hello_result result;
	} rows[] = {
		{"nothing", {0}, TLS_HELLO_MORE},
		{"one byte", BYTES("\x16"), TLS_HELLO_MORE},
		{"HTTP", BYTES("G"), TLS_HELLO_NOT_TLS},
		{"SSH", BYTES("SSH-2.0-x\r\n"), TLS_HELLO_NOT_TLS},
		{"SSL 2", BYTES("\x80\x2e\1\3\1"), TLS_HELLO_NOT_TLS},
		{"an alert", BYTES("\x15\3\1\0\2\2\x28"), TLS_HELLO_NOT_TLS},
		{"another major version", BYTES("\x16\2"), TLS_HELLO_NOT_TLS},
		{"junk first: an empty record", BYTES("\x16\3\1\0\0"), TLS_HELLO_MALFORMED},
		{"a record too long", BYTES("\x16\3\1\x40\1"), TLS_HELLO_MALFORMED},
		{"a server's hello", BYTES("\x16\3\1\0\4\2"), TLS_HELLO_MALFORMED},
		{"longer than anybody's", BYTES("\x16\3\1\0\4\1\1\0\1"), TLS_HELLO_MALFORMED},
		{"an alert between two records", BYTES("\x16\3\1\0\4\1\0\0\x30\x15"),
			TLS_HELLO_MALFORMED},
		{"a hello of no length", BYTES("\x16\3\1\0\4\1\0\0\0"), TLS_HELLO_MALFORMED},
		{"two messages in one record", BYTES("\x16\3\1\0\x08\1\0\0\0\1\0\0\0"),
			TLS_HELLO_MALFORMED},
		{"half", BYTES("\x16\3\1\0\x40\1\0\0\x3c\3\3"), TLS_HELLO_MORE},
	};

	for (size_t i = 0; i < N(rows); i++) {
		struct tls_hello hello = {0};

		if (tls_hello_feed(&hello, rows[i].in) != rows[i].result)
			fail_msg("%s: %d", rows[i].what, hello.result);
		tls_hello_done(&hello);
		hello = (struct tls_hello){0};
		for (size_t k = 0; k < rows[i].in.len; k++)
			(void)tls_hello_feed(&hello, (struct slice){rows[i].in.p + k, 1});
		if (hello.result != rows[i].result)
			fail_msg("%s, byte by byte: %d", rows[i].what, hello.result);
		tls_hello_done(&hello);
	}
}

/* Every prefix needs more, and a byte less at any place of the message is seen. */
static void test_cut(void **state)
{
	static const struct slice extensions = BYTES(GREASE H2 EXAMPLE ECH);
	scoped_str struct str message = {0};

	put_message(&message, extensions);
	for (size_t len = 0; len < message.len; len++) {
		scoped_str struct str record = {0};
		struct tls_hello hello = {0};

		if (len > 0)
			put_record(&record, message.p, len);
		assert_int_equal(tls_hello_feed(&hello, str_slice(&record)), TLS_HELLO_MORE);
		tls_hello_give_up(&hello);
		assert_int_equal(hello.result, TLS_HELLO_MALFORMED);
		assert_string_equal(hello.why, "it does not end");
		tls_hello_done(&hello);
		hello = (struct tls_hello){0};
		if (len < 4)
			continue;
		message.p[3] = (char)(len - 4);
		str_reset(&record);
		put_record(&record, message.p, len);
		(void)tls_hello_feed(&hello, str_slice(&record));
		/* Up to where the extensions begin, there may be none. */
		assert_true(
			hello.result == TLS_HELLO_MALFORMED || hello.result == TLS_HELLO_NO_NAME);
		assert_int_equal(
			hello.result == TLS_HELLO_NO_NAME, len == message.len - extensions.len - 2);
		tls_hello_done(&hello);
		message.p[3] = (char)(message.len - 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
