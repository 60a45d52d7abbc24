/* SPDX-License-Identifier: Apache-2.0 */
/* A program and a server, both nghttp2, with the machine between them; bytes go over in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gateway/h2_parts.h"
#include "http_drive.h"

#define BIG 3000000

/* A body to send: n times a byte. */
struct sending {
	size_t left;
	bool trailers;
};

struct peer {
	nghttp2_session *session;
	struct str log;  /* what it got */
	size_t bytes;    /* of bodies */
	bool reads_slow; /* its windows are not opened again */
	struct sending sending[64];
	const char *answer; /* of a server: "200", "103+200", "reset", "none", "early" */
	size_t answer_bytes;
	bool saw_never_index;
};

struct world {
	struct http_drive d;
	struct peer program, server;
};

static ssize_t send_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct sending *sending = source->ptr;
	static const nghttp2_nv trailer = {
		(uint8_t *)(uintptr_t) "grpc-status", (uint8_t *)(uintptr_t) "0", 11, 1, 0};

	if (len > sending->left)
		len = sending->left;
	memset(buf, 'b', len);
	sending->left -= len;
	if (sending->left)
		return (ssize_t)len;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (sending->trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		assert_int_equal(nghttp2_submit_trailer(session, id, &trailer, 1), 0);
	}
	return (ssize_t)len;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
	struct peer *p = user;

	str_printf(&p->log, "%d %.*s=%.*s\n", frame->hd.stream_id, (int)name_len, name,
		(int)value_len, value);
	if (flags & NGHTTP2_NV_FLAG_NO_INDEX)
		p->saw_never_index = true;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
	size_t len, void *user)
{
	struct peer *p = user;

	p->bytes += len;
	if (!p->reads_slow)
		assert_int_equal(nghttp2_session_consume(session, id, len), 0);
	if (len < 2000 && data[0] != 'b')
		str_printf(&p->log, "%d data %.*s\n", id, (int)len, data);
	return 0;
}

static void answer(struct peer *p, int32_t id)
{
	static const nghttp2_nv early[] = {
		{(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "103", 7, 3, 0},
		{(uint8_t *)(uintptr_t) "link", (uint8_t *)(uintptr_t) "x", 4, 1, 0}};
	static const nghttp2_nv final[] = {
		{(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "200", 7, 3, 0},
		{(uint8_t *)(uintptr_t) "server", (uint8_t *)(uintptr_t) "test", 6, 4, 0}};
	struct sending *sending = &p->sending[id / 2];
	nghttp2_data_provider provider = {{.ptr = sending}, send_body};

	sending->left = p->answer_bytes;
	sending->trailers = strstr(p->answer, "trailers") != NULL;
	if (strcmp(p->answer, "none") == 0)
		return;
	if (strcmp(p->answer, "reset") == 0) {
		assert_int_equal(
			nghttp2_submit_rst_stream(p->session, 0, id, NGHTTP2_ENHANCE_YOUR_CALM), 0);
		return;
	}
	if (strstr(p->answer, "103"))
		assert_int_equal(
			nghttp2_submit_headers(p->session, 0, id, NULL, early, 2, NULL), 0);
	assert_int_equal(nghttp2_submit_response(p->session, id, final, 2,
				 sending->left || sending->trailers ? &provider : NULL),
		0);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct peer *p = user;
	bool last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (frame->hd.type == NGHTTP2_RST_STREAM)
		str_printf(&p->log, "%d reset %u\n", frame->hd.stream_id,
			frame->rst_stream.error_code);
	if (frame->hd.type == NGHTTP2_GOAWAY)
		str_printf(&p->log, "goaway %d %u\n", frame->goaway.last_stream_id,
			frame->goaway.error_code);
	if (last && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
		str_printf(&p->log, "%d end\n", frame->hd.stream_id);
	if (p->answer &&
		(last || (strcmp(p->answer, "early") == 0 && frame->hd.type == NGHTTP2_HEADERS)) &&
		(frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
		answer(p, frame->hd.stream_id);
	return 0;
}

static void make_peer(struct peer *p, bool is_server)
{
	nghttp2_session_callbacks *c;
	nghttp2_option *option;

	assert_int_equal(nghttp2_session_callbacks_new(&c), 0);
	assert_int_equal(nghttp2_option_new(&option), 0);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	if (is_server)
		assert_int_equal(nghttp2_session_server_new2(&p->session, c, p, option), 0);
	else
		assert_int_equal(nghttp2_session_client_new2(&p->session, c, p, option), 0);
	nghttp2_session_callbacks_del(c);
	nghttp2_option_del(option);
	assert_int_equal(nghttp2_submit_settings(p->session, 0, NULL, 0), 0);
}

static void begin(struct world *w, size_t step, struct http_setup setup)
{
	*w = (struct world){
		.d = {.step = step, .refuse_host = "denied.test"}, .server = {.answer = "200"}};
	setup.name = "a.test";
	setup.address = "192.0.2.1";
	setup.port = setup.tls ? 443 : 80;
	setup.body_limit = 16;
	setup.hooks = &http_drive_hooks;
	setup.arg = &w->d;
	h2_machine_new(&setup, &w->d.machine);
	make_peer(&w->program, false);
	make_peer(&w->server, true);
}

static void finish(struct world *w)
{
	http_drive_done(&w->d);
	nghttp2_session_del(w->program.session);
	nghttp2_session_del(w->server.session);
	str_done(&w->program.log);
	str_done(&w->server.log);
}

/* What a peer wants to send is handed to the machine, what arrived is read. True where something moved. */
static bool exchange(struct world *w, struct peer *p, enum machine_side side)
{
	struct str *got = &w->d.got[side];
	const uint8_t *out;
	ssize_t n = nghttp2_session_mem_send(p->session, &out);
	bool moved = n > 0 || got->len > 0;

	assert_true(n >= 0);
	str_add(&w->d.pending[side], out, (size_t)n);
	if (got->len)
		assert_int_equal(
			nghttp2_session_mem_recv(p->session, (const uint8_t *)got->p, got->len),
			got->len);
	str_reset(got);
	return moved;
}

static void run(struct world *w)
{
	bool moved;

	do {
		moved = exchange(w, &w->program, MACHINE_CLIENT);
		moved |= exchange(w, &w->server, MACHINE_SERVER);
		http_drive_run(&w->d);
	} while (moved || w->d.got[MACHINE_CLIENT].len || w->d.got[MACHINE_SERVER].len);
}

struct ask {
	const char *method, *authority, *path;
	const char *name, *value; /* a field; NULL: none */
	size_t bytes;
	bool trailers;
};

static int32_t ask(struct world *w, struct ask a)
{
	const char *const texts[][2] = {{":method", a.method ? a.method : "GET"},
		{":scheme", "http"}, {":path", a.path ? a.path : "/"},
		{":authority", a.authority ? a.authority : "a.test"}, {a.name, a.value}};
	nghttp2_nv nv[5];
	size_t n = 0;
	struct sending *sending =
		&w->program.sending[nghttp2_session_get_next_stream_id(w->program.session) / 2];
	nghttp2_data_provider provider = {{.ptr = sending}, send_body};
	int32_t id;

	*sending = (struct sending){a.bytes, a.trailers};
	for (size_t i = 0; i < 5 && texts[i][0]; i++)
		nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t)texts[i][0],
			(uint8_t *)(uintptr_t)texts[i][1], strlen(texts[i][0]), strlen(texts[i][1]),
			0};
	id = nghttp2_submit_request(
		w->program.session, NULL, nv, n, a.bytes || a.trailers ? &provider : NULL, NULL);
	assert_true(id > 0);
	return id;
}

static const size_t steps[] = {1, 2, 9, 100, 65536};

static void has(struct str *log, const char *want)
{
	str_putc(log, '\0');
	log->len--;
	if (!strstr(log->p, want))
		fail_msg("'%s' is not in:\n%s", want, log->p);
}

static void test_exchanges(void **state)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct world w;

		begin(&w, steps[i], (struct http_setup){0});
		w.server.answer = "103+200 trailers";
		w.server.answer_bytes = 5;
		ask(&w, (struct ask){.path = "/1?q", .name = "te", .value = "trailers"});
		ask(&w, (struct ask){
				.method = "POST", .path = "/2", .bytes = 40, .trailers = true});
		run(&w);
		has(&w.server.log, "1 :method=GET\n1 :scheme=http\n1 :authority=a.test\n1 "
				   ":path=/1?q\n1 te=trailers\n1 end\n");
		has(&w.server.log, "3 grpc-status=0\n3 end\n");
		has(&w.program.log, "1 :status=103\n1 link=x\n1 :status=200\n1 server=test\n");
		has(&w.program.log, "1 grpc-status=0\n1 end\n");
		assert_int_equal(w.program.bytes, 10);
		assert_int_equal(w.server.bytes, 40);
		has(&w.d.log, "h2 GET http://a.test/1?q body=0: -> 200 body=5\n");
		has(&w.d.log, "h2 POST http://a.test/2 body=40~:bbbbbbbbbbbbbbbb -> 200 body=5\n");
		finish(&w);
	}
}

/* A refused stream reads why; the others go on, and nothing of it reaches the server. */
static void test_refusals(void **state)
{
	static const struct ask asks[] = {{.authority = "denied.test", .path = "/x"},
		{.name = "host", .value = "denied.test"}, {.authority = "DENIED.test:80"},
		{.method = "POST", .authority = "denied.test", .bytes = BIG}};

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
		for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
			struct world w;

			begin(&w, steps[s], (struct http_setup){0});
			ask(&w, (struct ask){.path = "/before"});
			ask(&w, asks[i]);
			ask(&w, (struct ask){.path = "/behind"});
			run(&w);
			has(&w.program.log, i == 1 ? "3 :status=400\n" : "3 :status=403\n");
			has(&w.program.log, "3 content-type=application/problem+json\n");
			has(&w.program.log,
				i == 1 ? "the request names no host, or two"
				       : "No rule allows denied.test. Retrying will not help");
			has(&w.program.log, "1 :status=200\n");
			has(&w.program.log, "5 :status=200\n");
			has(&w.server.log, "1 :path=/before\n");
			has(&w.server.log, "3 :path=/behind\n");
			assert_int_equal(w.server.bytes, 0);
			assert_null(strstr(w.server.log.p, "denied"));
			has(&w.d.log, "refused 40");
			if (asks[i].bytes)
				has(&w.program.log, "3 reset 0\n");
			finish(&w);
		}
}

static void test_connect(void **state)
{
	const nghttp2_nv nv[] = {
		{(uint8_t *)(uintptr_t) ":method", (uint8_t *)(uintptr_t) "CONNECT", 7, 7, 0},
		{(uint8_t *)(uintptr_t) ":authority", (uint8_t *)(uintptr_t) "b.test:443", 10, 10,
			0}};
	struct world w;

	begin(&w, 50, (struct http_setup){0});
	assert_int_equal(nghttp2_submit_request(w.program.session, NULL, nv, 2, NULL, NULL), 1);
	run(&w);
	has(&w.program.log, "1 :status=403\n");
	has(&w.d.log, "judge CONNECT http://b.test:443 host=b.test port=443 path= connect\n");
	has(&w.d.log, "refused 403 CONNECT http://b.test:443 host=b.test [no tunnels] Tunnels");
	assert_int_equal(w.server.log.len, 0);
	finish(&w);
}

/* More fields than a head may have: that stream is reset, and told of; the others go on. */
static void test_bad_heads(void **state)
{
	nghttp2_nv nv[304] = {
		{(uint8_t *)(uintptr_t) ":method", (uint8_t *)(uintptr_t) "GET", 7, 3, 0},
		{(uint8_t *)(uintptr_t) ":scheme", (uint8_t *)(uintptr_t) "http", 7, 4, 0},
		{(uint8_t *)(uintptr_t) ":path", (uint8_t *)(uintptr_t) "/", 5, 1, 0},
		{(uint8_t *)(uintptr_t) ":authority", (uint8_t *)(uintptr_t) "a.test", 10, 6, 0}};
	struct world w;

	for (size_t i = 4; i < 304; i++)
		nv[i] = (nghttp2_nv){
			(uint8_t *)(uintptr_t) "x", (uint8_t *)(uintptr_t) "y", 1, 1, 0};
	begin(&w, 50, (struct http_setup){0});
	assert_int_equal(nghttp2_submit_request(w.program.session, NULL, nv, 304, NULL, NULL), 1);
	ask(&w, (struct ask){.path = "/behind"});
	run(&w);
	has(&w.program.log, "1 reset 2\n");
	has(&w.program.log, "3 :status=200\n");
	has(&w.d.log, "refused 400  - host=- [unreadable HTTP] the head of a request was malformed "
		      "or too "
		      "long\n");
	assert_null(strstr(w.server.log.p, " x=y"));
	finish(&w);
}

static void test_resets(void **state)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct world w;
		int32_t id;

		begin(&w, steps[i], (struct http_setup){0});
		w.server.answer = "reset";
		ask(&w, (struct ask){.path = "/1"});
		run(&w);
		has(&w.program.log, "1 reset 11\n");
		has(&w.d.log, "-> 0 error=the server reset the stream\n");
		w.server.answer = "none";
		id = ask(&w, (struct ask){.path = "/2"});
		run(&w);
		assert_int_equal(
			nghttp2_submit_rst_stream(w.program.session, 0, id, NGHTTP2_CANCEL), 0);
		run(&w);
		has(&w.server.log, "3 reset 8\n");
		has(&w.d.log, "-> 0 error=the client reset the stream\n");
		/* the answer is whole before the request is: the client gets it, and is told to stop */
		w.server.answer = "early";
		w.server.reads_slow = true;
		ask(&w, (struct ask){.method = "POST", .path = "/3", .bytes = BIG});
		run(&w);
		has(&w.program.log, "5 :status=200\n5 server=test\n5 end\n");
		assert_int_equal(
			nghttp2_submit_rst_stream(w.server.session, 0, 5, NGHTTP2_NO_ERROR), 0);
		run(&w);
		has(&w.program.log, "5 end\n5 reset 0\n");
		finish(&w);
	}
}

/* Other rules: a stream that they refuse ends on both sides, its connections go on. */
static void test_other_rules(void **state)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct world w;

		begin(&w, steps[i], (struct http_setup){0});
		w.server.answer = "none";
		ask(&w, (struct ask){.authority = "b.test", .path = "/1"});
		ask(&w, (struct ask){.path = "/2"});
		run(&w);
		w.d.refuse_host = "b.test";
		assert_int_equal(w.d.machine.ops->check(w.d.machine.self, true), 0);
		run(&w);
		has(&w.server.log, "1 reset 8\n");
		has(&w.program.log, "1 :status=403\n");
		has(&w.d.log, "http://b.test/1 body=0: -> 0 error=the rules in force now refuse "
			      "it\nrefused 403");
		assert_null(strstr(w.program.log.p, "3 "));
		w.server.answer = "200";
		ask(&w, (struct ask){.path = "/3"});
		run(&w);
		has(&w.program.log, "5 :status=200\n");
		finish(&w);
	}
}

static void test_goaway(void **state)
{
	struct world w;

	begin(&w, 30, (struct http_setup){0});
	ask(&w, (struct ask){.path = "/1"});
	run(&w);
	assert_int_equal(
		nghttp2_submit_goaway(w.server.session, 0, 1, NGHTTP2_NO_ERROR, NULL, 0), 0);
	run(&w);
	has(&w.program.log, "goaway 1 0\n");
	assert_true(w.d.machine.ops->wants_end(w.d.machine.self, MACHINE_CLIENT));
	assert_true(w.d.machine.ops->wants_end(w.d.machine.self, MACHINE_SERVER));
	finish(&w);
}

/* The server goes: what waits is reset, the client is told to go elsewhere. */
static void test_server_ends(void **state)
{
	struct world w;

	begin(&w, 30, (struct http_setup){0});
	w.server.answer = "none";
	ask(&w, (struct ask){.path = "/1"});
	run(&w);
	http_drive_eof(&w.d, MACHINE_SERVER);
	run(&w);
	has(&w.program.log, "1 reset 2\n");
	has(&w.program.log, "goaway 1 0\n");
	has(&w.d.log, "-> 0 error=the server ended without an answer\n");
	assert_true(w.d.machine.ops->wants_end(w.d.machine.self, MACHINE_CLIENT));
	finish(&w);
}

static void test_client_ends(void **state)
{
	struct world w;

	begin(&w, 30, (struct http_setup){0});
	w.server.answer = "none";
	ask(&w, (struct ask){.path = "/1"});
	run(&w);
	http_drive_eof(&w.d, MACHINE_CLIENT);
	assert_true(w.d.machine.ops->wants_end(w.d.machine.self, MACHINE_SERVER));
	finish(&w);
}

static size_t waiting(const struct world *w)
{
	const struct h2_machine *m = w->d.machine.self;
	size_t n = m->out[0].len + m->out[1].len;

	for (const struct h2_stream *s = m->streams; s; s = s->next)
		n += s->to[0].waiting.len + s->to[1].waiting.len;
	return n;
}

/* Bodies larger than every window go both ways; a program that does not read holds the server back. */
static void test_windows(void **state)
{
	struct world w;

	begin(&w, 10000, (struct http_setup){0});
	w.server.answer_bytes = BIG;
	ask(&w, (struct ask){.method = "POST", .bytes = BIG});
	run(&w);
	assert_int_equal(w.server.bytes, BIG);
	assert_int_equal(w.program.bytes, BIG);
	has(&w.d.log, "body=3000000~:bbbbbbbbbbbbbbbb -> 200 body=3000000\n");
	w.program.reads_slow = true;
	for (int i = 0; i < 8; i++)
		ask(&w, (struct ask){.path = "/slow"});
	run(&w);
	assert_in_range(w.program.bytes, BIG + 1, BIG + 65536);
	assert_in_range(waiting(&w), 1, H2_CONN_WINDOW + 2 * H2_HIGH_WATER);
	finish(&w);
}

/* A stream that goes out as fast as it comes gets wider windows out of the shared spare, which gets them back. */
static void test_wide_windows(void **state)
{
	size_t spare = 2 << 20;
	struct world w;

	begin(&w, 65536, (struct http_setup){.spare = &spare});
	ask(&w, (struct ask){.method = "POST", .bytes = 4 * BIG});
	run(&w);
	assert_int_equal(w.server.bytes, 4 * BIG);
	assert_int_equal(spare, 1 << 20);
	assert_true(w.d.most <= 2 * H2_HIGH_WATER);
	finish(&w);
	assert_int_equal(spare, 2 << 20);
}

static void test_broken_bytes(void **state)
{
	struct world w;

	begin(&w, 30, (struct http_setup){0});
	http_drive_send(&w.d, MACHINE_CLIENT, slice_of("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"));
	assert_true(w.d.machine.ops->error(w.d.machine.self) < 0 ||
		    w.d.machine.ops->wants_end(w.d.machine.self, MACHINE_CLIENT));
	finish(&w);
}

#define VALUE   "tok_0011223344556677"
#define STAND   "tok_9988776655443322"
#define T(text) ((char *)(uintptr_t)(text))

static void test_secrets(void **state)
{
	static char *hosts[] = {T("a.test")};
	const struct spec_secret list = {
		.name = T("ONE"), .hosts = {hosts, 1}, .value = T(VALUE), .stand_in = T(STAND)};
	scoped(secrets) struct secrets *set = NULL;
	struct world w;

	assert_int_equal(secrets_new(&list, 1, &set, NULL), 0);
	begin(&w, 7, (struct http_setup){.tls = true, .verified = true, .secrets = set});
	ask(&w, (struct ask){.path = "/?k=" STAND, .name = "x-token", .value = STAND});
	ask(&w, (struct ask){.authority = "b.test", .name = "x-token", .value = STAND});
	ask(&w, (struct ask){.path = "/enc", .name = "accept-encoding", .value = "br"});
	run(&w);
	has(&w.server.log, "1 :path=/?k=" VALUE "\n1 x-token=" VALUE "\n");
	assert_true(w.server.saw_never_index);
	has(&w.server.log, "accept-encoding=identity\n");
	assert_null(strstr(w.server.log.p, "b.test"));
	has(&w.program.log, "3 :status=403\n");
	has(&w.d.log, "h2 GET https://a.test/?k=" STAND " body=0: -> 200 secret=ONE\n");
	has(&w.d.log, "misuse ONE b.test header\n");
	assert_null(strstr(w.d.log.p, VALUE));
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exchanges),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_bad_heads),
		cmocka_unit_test(test_resets),
		cmocka_unit_test(test_other_rules),
		cmocka_unit_test(test_goaway),
		cmocka_unit_test(test_server_ends),
		cmocka_unit_test(test_client_ends),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_wide_windows),
		cmocka_unit_test(test_broken_bytes),
		cmocka_unit_test(test_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
