/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/ws.h"

/* Reads all of it in pieces of `step` bytes to "opcode+fin[:z] payload|" a frame, and what is written anew to
 * copy. The fault, or NULL. */
static const char *walk(
	struct ws_reader r, struct slice in, size_t step, struct str *out, struct str *copy)
{
	while (in.len) {
		struct slice part = {.p = in.p, .len = in.len < step ? in.len : step};
		struct ws_piece piece;
		long n = ws_read(&r, part, &piece);

		if (n < 0)
			return r.fault;
		assert_true(n > 0);
		if (piece.begins) {
			str_printf(out, "%d%s%s ", r.frame.opcode, r.frame.fin ? "+" : "",
				r.frame.compressed ? ":z" : "");
			ws_add_head(copy, &r.frame);
		}
		ws_unmask(&r.frame, piece.at, piece.payload, out);
		str_add(copy, piece.payload.p, piece.payload.len);
		if (piece.ends)
			str_putc(out, '|');
		in.p += n;
		in.len -= (size_t)n;
	}
	return NULL;
}

#define KEY   "\1\2\3\4"
#define HELLO "\x69\x67\x6f\x68\x6e" /* "hello" under KEY */

static const struct {
	bool from_client, may_compress;
	struct slice in;
	const char *want, *fault;
} rows[] = {
#define S(text) \
	{ \
		text, sizeof(text) - 1 \
	}
	{false, false, S("\x81\x05hello"), "1+ hello|", NULL},
	{true, false, S("\x82\x85" KEY HELLO), "2+ hello|", NULL},
	{false, false, S("\x81\x00"), "1+ |", NULL},
	{false, false, S("\x01\x02he\x89\x01p\x80\x03llo"), "1 he|9+ p|0+ llo|", NULL},
	{false, true, S("\x41\x01x\x00\x01y\x80\x01z"), "1:z x|0 y|0+ z|", NULL},
	{true, false, S("\x88\x82" KEY "\2\xea"), "8+ \3\xe8|", NULL},
	{false, false, S("\x81\x85" KEY HELLO), "", "a server's frame is masked"},
	{true, false, S("\x81\x05hello"), "", "a client's frame is not masked"},
	{false, false, S("\xc1\x05hello"), "", "a reserved bit is set"},
	{false, true, S("\xa1\x05hello"), "", "a reserved bit is set"},
	{false, false, S("\x80\x01x"), "", "a continuation continues nothing"},
	{false, false, S("\x01\x01x\x81\x01y"), "1 x|", "a message begins inside another"},
	{false, true, S("\x01\x01x\xc0\x01y"), "1 x|", "a continuation is marked compressed"},
	{false, false, S("\x09\x01x"), "", "a control frame is cut, long or compressed"},
	{false, false, S("\x89\x7e\x00\x7ex"), "", "a control frame is cut, long or compressed"},
	{false, false, S("\x83\x00"), "", "an opcode is unknown"},
	{false, false, S("\x8b\x00"), "", "an opcode is unknown"},
	{false, false, S("\x81\x7e\x00\x05hello"), "", "a length is written longer than needed"},
	{false, false, S("\x81\x7f\0\0\0\0\0\0\xff\xff"), "",
		"a length is written longer than needed"},
	{false, false, S("\x81\x7f\x80\0\0\0\0\0\0\0"), "", "a length is too large"},
};

static void test_frames(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t step = 1; step <= rows[i].in.len; step++) {
			scoped_str struct str out = {0}, copy = {0};
			struct ws_reader r = {.from_client = rows[i].from_client,
				.may_compress = rows[i].may_compress};
			const char *fault = walk(r, rows[i].in, step, &out, &copy);

			str_putc(&out, '\0');
			assert_string_equal(out.p, rows[i].want);
			if (rows[i].fault) {
				assert_non_null(fault);
				assert_string_equal(fault, rows[i].fault);
			} else {
				assert_null(fault);
				assert_int_equal(copy.len, rows[i].in.len);
				assert_memory_equal(copy.p, rows[i].in.p, copy.len);
			}
		}
}

/* Each form of length, at its borders. */
static void test_lengths(void **state)
{
	static const size_t lens[] = {0, 125, 126, 127, 65535, 65536, 70000};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		scoped_str struct str in = {0}, out = {0}, copy = {0}, payload = {0};
		struct ws_frame frame = {.opcode = WS_BINARY,
			.fin = true,
			.masked = true,
			.len = lens[i],
			.key = {9, 8, 7, 6}};

		for (size_t n = 0; n < lens[i]; n++)
			str_putc(&payload, (char)n);
		ws_add_head(&in, &frame);
		ws_unmask(&frame, 0, str_slice(&payload), &in);
		assert_null(walk((struct ws_reader){.from_client = true}, str_slice(&in), 4093,
			&out, &copy));
		assert_int_equal(copy.len, in.len);
		assert_memory_equal(copy.p, in.p, in.len);
		assert_int_equal(out.len, 3 + lens[i] + 1);
		if (lens[i])
			assert_memory_equal(out.p + 3, payload.p, lens[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
