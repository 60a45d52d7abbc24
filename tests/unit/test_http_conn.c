/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection to the control plane: what is answered, and when it is closed; in one piece and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "http_conn_drive.h"
#include "server/dispatch.h"
#include "server/http_status.h"

#define BIG_HEAD 70000

static const struct {
	const char *in, *want; /* "STATUS BODY|" for each answer */
	bool is_closed;
} rows[] = {
	{"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "200 GET /a |", false},
	{"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\nGET /c "
	 "HTTP/1.1\r\nHost: "
	 "h\r\n\r\n",
		"200 GET /a |200 GET /b |200 GET /c |", false},
	{"GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
		"200 GET /later |200 GET /b |", false},
	{"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: "
	 "h\r\n\r\n",
		"200 POST /a abc|200 GET /b |", false},
	{"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
	 "chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
		"200 POST /a abc|", false},
	{"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "200 POST /a |", false},
	{"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\nHost: "
	 "h\r\n\r\n",
		"200 GET /a |", true},
	{"GET /a HTTP/1.0\r\n\r\n", "200 GET /a |", true},
	{"GET /later HTTP/1.0\r\n\r\n", "200 GET /later |", true},
	{"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", "200 |", false},
	{"HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n", "200 |", false},
	{"GET /stream HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
		"200 3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n|200 GET /b |", false},
	{"GET /stream HTTP/1.0\r\n\r\n", "200 onetwo|", true},
	{"POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
		"100 |200 POST /a ab|", false},
	/* asked first, its body later */
	{"POST /ask HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: "
	 "h\r\n\r\n",
		"200 POST /ask abc|200 GET /b |", false},
	{"POST /ask/later HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: "
	 "chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
		"100 |200 POST /ask/later abc|", false},
	{"GET /ask/no HTTP/1.1\r\nHost: h\r\n\r\n", "200 GET /ask/no |", false},
	{"POST /ask/no HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: "
	 "3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
		"200 POST /ask/no |", true},
	{"POST /ask/later HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n", "413 bad_request|",
		true},
	{"POST /ask HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		"400 bad_request|", true},
	/* refused, and nothing behind it is read */
	{"POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /b "
	 "HTTP/1.1\r\nHost: h\r\n\r\n",
		"403 no_entry|", true},
	{"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\nGET /b HTTP/1.1\r\nHost: "
	 "h\r\n\r\n",
		"413 bad_request|", true},
	{"POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
		"413 bad_request|", true},
	{"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", NULL, false},
	{"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		"400 bad_request|", true},
	{"GET /a HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
		"200 GET /a |400 bad_request|", true},
	{"GET /a HTTP/1.1\nHost: h\n\n", "400 bad_request|", true},
	{"GET /a HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", "400 bad_request|", true},
	{"GET /a HTTP/2.0\r\nHost: h\r\n\r\n", "505 bad_request|", true},
	{"GET /a HTTP/1.1\r\nHost: h\r\n", "", false},
	{"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nab", "", false},
	{"", "", false},
};

static size_t number_behind(const char *head, const char *name)
{
	const char *at = strstr(head, name);

	return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

/* A problem is told by its code. */
static void tell_body(struct str *told, const char *body, size_t len)
{
	const char *code = memmem(body, len, "\"code\":\"", 8);

	if (code)
		str_add(told, code + 8, strcspn(code + 8, "\""));
	else
		str_add(told, body, len);
}

/* Of a body without a length as much as there is up to the next head. */
static void tell(const char *in, bool is_head, struct str *told)
{
	while (strncmp(in, "HTTP/1.1 ", 9) == 0) {
		const char *end = strstr(in, "\r\n\r\n"), *next;
		scoped_mem char *head = mem_copy(in, (size_t)(end ? end + 4 - in : 0));
		size_t len = number_behind(head, "Content-Length: ");

		assert_non_null(end);
		in = end + 4;
		next = strstr(in, "HTTP/1.1 ");
		if (!len && !is_head)
			len = next ? (size_t)(next - in) : strlen(in);
		str_add(told, head + 9, 4);
		tell_body(told, in, is_head ? 0 : len);
		str_putc(told, '|');
		in += is_head ? 0 : len;
	}
	assert_string_equal(in, "");
}

static void check(const char *in, size_t step, const char *want, bool is_closed)
{
	scoped_str struct str told = {0};
	struct drive drive;

	drive_open(&drive);
	(void)drive_send(&drive, slice_of(in), step); /* it may be closed before the end */
	drive_turn(&drive);
	tell(drive.out.p ? drive.out.p : "", strncmp(in, "HEAD", 4) == 0, &told);
	if (want && strcmp(told.p ? told.p : "", want) != 0)
		fail_msg("'%s' by %zu: '%s', not '%s'", in, step, told.p, want);
	if (want && drive.is_closed != is_closed)
		fail_msg("'%s' by %zu: %s", in, step, drive.is_closed ? "closed" : "open");
	drive_close(&drive);
}

static void test_answers(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check(rows[i].in, (size_t)-1, rows[i].want, rows[i].is_closed);
		check(rows[i].in, 1, rows[i].want, rows[i].is_closed);
		check(rows[i].in, 7, rows[i].want, rows[i].is_closed);
	}
}

static void test_a_long_head(void **state)
{
	scoped_str struct str in = {0};

	str_puts(&in, "GET /a HTTP/1.1\r\nHost: h\r\nX: ");
	while (in.len < BIG_HEAD)
		str_puts(&in, "xxxxxxxxxx");
	check(in.p, (size_t)-1, "431 bad_request|", true);
	check(in.p, 1000, "431 bad_request|", true);
}

static void test_a_long_chunked_body(void **state)
{
	scoped_str struct str in = {0};

	str_puts(&in, "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 11; i++)
		str_printf(&in, "64\r\n%0100d\r\n", i);
	check(in.p, (size_t)-1, "413 bad_request|", true);
	check(in.p, 50, "413 bad_request|", true);
}

/* A client that sends all of what is refused still gets to read why. */
static void test_a_refused_client_is_heard_out(void **state)
{
	scoped_mem char *body = mem_zero(1, 5000000);
	scoped_str struct str told = {0};
	struct drive drive;

	drive_open(&drive);
	assert_true(drive_send(&drive,
		slice_of("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n"), 1000));
	assert_true(drive_send(&drive, (struct slice){.p = body, .len = 5000000}, 100000));
	tell(drive.out.p, false, &told);
	assert_string_equal(told.p, "413 bad_request|");
	assert_int_equal(http_conn_count(drive.conns), 1);
	shutdown(drive.fd, SHUT_WR);
	drive_turn(&drive);
	assert_int_equal(http_conn_count(drive.conns), 0);
	drive_close(&drive);
}

/* An answer that was cut shows it: its last chunk is missing, and the connection ends. */
static void test_a_cut_answer(void **state)
{
	struct drive drive;

	drive_open(&drive);
	assert_true(
		drive_send(&drive, slice_of("GET /stream/cut HTTP/1.1\r\nHost: h\r\n\r\n"), 100));
	assert_true(drive.is_closed);
	assert_null(drive.out.p ? strstr(drive.out.p, "\r\n0\r\n") : NULL);
	drive_close(&drive);
}

/* Who has left before the answer is gone; the answer to nobody does no harm. */
static void test_a_client_that_leaves(void **state)
{
	struct drive drive;

	drive_open(&drive);
	assert_int_equal(send(drive.fd, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n", 32, 0), 32);
	shutdown(drive.fd, SHUT_RDWR);
	for (int i = 0; i < 5; i++)
		event_base_loop(drive.base, EVLOOP_NONBLOCK);
	assert_int_equal(drive.n, 1);
	assert_int_equal(http_conn_count(drive.conns), 0);
	drive_close(&drive);
}

/* ---- room for bodies ---- */

static void check_room(const char *in, size_t max, const char *want)
{
	scoped_str struct str told = {0};
	struct drive drive;

	drive_open(&drive);
	drive.bodies.max = max;
	(void)drive_send(&drive, slice_of(in), 50);
	drive_turn(&drive);
	tell(drive.out.p ? drive.out.p : "", false, &told);
	if (strcmp(told.p ? told.p : "", want) != 0)
		fail_msg("'%s' with room for %zu: '%s', not '%s'", in, max, told.p, want);
	drive_close(&drive);
	assert_int_equal(drive.bodies.held, 0);
}

static void test_room_for_bodies(void **state)
{
	static const char one[] = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde";
	static const char asked[] =
		"POST /ask HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde";
	static const char chunks[] =
		"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\n"
		"de\r\n0\r\n\r\n";

	check_room(one, 5, "200 POST /a abcde|");
	check_room(one, 4, "503 overloaded|");
	check_room(asked, 5, "200 POST /ask abcde|");
	drive_n_missed = 0;
	check_room(asked, 4, "503 overloaded|");
	assert_int_equal(drive_n_missed, 1); /* else nobody would end it */
	check_room(chunks, 5, "200 POST /a abcde|");
	check_room(chunks, 4, "503 overloaded|");
	check_room("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 0, "200 GET /a |");
}

/* Its room is there for others then. */
static void test_a_client_that_leaves_within_a_body(void **state)
{
	static const char *const targets[] = {"/a", "/ask", "/ask/later"};

	for (size_t i = 0; i < 3; i++) {
		scoped_str struct str in = {0};
		struct drive drive;

		str_printf(&in, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
			targets[i]);
		drive_open(&drive);
		assert_true(drive_send(&drive, str_slice(&in), 1000));
		assert_int_equal(drive.bodies.held, 9);
		shutdown(drive.fd, SHUT_RDWR);
		drive_turn(&drive);
		assert_int_equal(http_conn_count(drive.conns), 0);
		assert_int_equal(drive.bodies.held, 0);
		drive_close(&drive);
	}
}

/* ---- texts of paths and queries, statuses ---- */

static const struct {
	const char *in;
	bool is_query;
	const char *want; /* NULL: refused */
} texts[] = {
	{"", false, ""},
	{"a", false, "a"},
	{"%41", false, "A"},
	{"%4", false, NULL},
	{"%", false, NULL},
	{"a%4g", false, NULL},
	{"%c3%A9", false, "\xc3\xa9"},
	{"%c3", false, NULL},
	{"%ff", false, NULL},
	{"\xff", false, NULL},
	{"%00", false, NULL},
	{"%ed%a0%80", false, NULL},
	{"a+b", false, "a+b"},
	{"a+b", true, "a b"},
	{"a%2bb", true, "a+b"},
	{"%2525", false, "%25"},
	{"..%2f", false, "../"},
};

static void test_decode(void **state)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		scoped_mem char *out = NULL;
		int r = dispatch_decode(slice_of(texts[i].in), texts[i].is_query, &out);

		assert_int_equal(r, texts[i].want ? 0 : -EINVAL);
		if (texts[i].want)
			assert_string_equal(out, texts[i].want);
	}
}

static void test_problems(void **state)
{
	scoped_str struct str out = {0};
	const char *code = NULL;

	assert_int_equal(http_status_of(-ENOENT, &code), 404);
	assert_string_equal(code, "not_found");
	assert_int_equal(http_status_of(-EBADFD, &code), 409);
	assert_string_equal(code, "wrong_state");
	assert_int_equal(http_status_of(-EIO, &code), 500);
	assert_string_equal(code, "internal");
	assert_string_equal(http_status_reason(418), "Unknown");
	http_status_problem(&out, 400, "invalid", "it is cut: \xe6\xbc", "/v1/\"");
	assert_string_equal(out.p,
		"{\"type\":\"about:blank\",\"title\":\"Bad "
		"Request\",\"status\":400,\"detail\":\"it is "
		"cut: \xef\xbf\xbd\xef\xbf\xbd\",\"code\":\"invalid\",\"instance\":\"/v1/\\\"\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_a_long_head),
		cmocka_unit_test(test_a_long_chunked_body),
		cmocka_unit_test(test_a_refused_client_is_heard_out),
		cmocka_unit_test(test_a_cut_answer),
		cmocka_unit_test(test_a_client_that_leaves),
		cmocka_unit_test(test_room_for_bodies),
		cmocka_unit_test(test_a_client_that_leaves_within_a_body),
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_problems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
