/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a body as it goes by, and how it goes to the record: in its event, or beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/bridge_body.h"
#include "gateway/channel.h"
#include "gateway/http_copy.h"
#include "proto/gateway_wire.h"
#include "util/mem.h"

#define BYTES 100000

/* Bytes that tell where they stood. */
static void fill(char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (char)('a' + i * 7 / 5 % 26);
}

static void add_all(struct http_copy *copy, const char *p, size_t len, size_t step)
{
	for (size_t i = 0; i < len; i += step)
		http_copy_add(
			copy, (struct slice){.p = p + i, .len = step < len - i ? step : len - i});
}

/* In pieces of any size the first bytes are kept, and the last ones of the others, in bounded memory. */
static void test_head_and_tail(void **state)
{
	static const size_t steps[] = {1, 7, 4096, 16384, 16385, 65536, BYTES};
	static const size_t sizes[] = {
		0, 999, 1000, 1001, 1500, 2000, 2001, 17384, 17385, 60000, BYTES};
	const struct http_setup setup = {.body_limit = 1000};
	char *bytes = new0_n(char, BYTES);

	fill(bytes, BYTES);
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			size_t len = sizes[i], head = len < 1000 ? len : 1000;
			size_t tail = len - head < 1000 ? len - head : 1000;
			struct http_copy_view view;
			struct http_copy copy;

			http_copy_init(&copy, &setup, false, false);
			add_all(&copy, bytes, len, steps[s]);
			http_copy_view(&copy, &view);
			assert_int_equal(view.seen, len);
			assert_int_equal(view.truncated, len > 1000);
			assert_int_equal(view.bytes.len, head);
			assert_int_equal(view.tail.len, tail);
			assert_true(head == 0 || memcmp(view.bytes.p, bytes, head) == 0);
			assert_true(
				tail == 0 || memcmp(view.tail.p, bytes + len - tail, tail) == 0);
			assert_true(copy.tail.cap < 4096);
			http_copy_done(&copy);
		}
	}
	free(bytes);
}

/* One body through to its event; the frames that went beside it as "type:bytes" in *beside. */
static void tell(const struct http_copy_view *view, struct event *ev, struct bridge_body *body,
	struct str *beside)
{
	struct gateway_frame frame;
	struct channel *channel;
	struct slice in;
	int fds[2];
	char buf[8192];
	ssize_t n;
	long taken;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	channel = channel_new(fds[0], "sb_0123456789abcdef", 0);
	bridge_body_send(channel, view, body);
	bridge_body_tell(body, ev);
	assert_int_equal(channel_push(channel), 0);
	channel_free(channel);
	close(fds[0]);
	n = recv(fds[1], buf, sizeof(buf), MSG_WAITALL);
	assert_true(n >= 0);
	in = (struct slice){.p = buf, .len = (size_t)n};
	while (in.len && (taken = gateway_wire_take(in, &frame)) > 0) {
		str_printf(beside, "%d:%.*s ", (int)frame.type, (int)frame.rest.len, frame.rest.p);
		in = (struct slice){.p = in.p + taken, .len = in.len - (size_t)taken};
	}
	close(fds[1]);
}

#define HEAD "6:"
#define TAIL "7:"

/* What stands at a cut: characters, and bytes that are none. */
static void test_cut_bodies_go_beside(void **state)
{
	static const struct {
		const char *head, *tail, *encoding, *beside;
	} rows[] = {
		{"abc", "xyz", "utf8", HEAD "abc " TAIL "xyz "},
		{"abc", "", "utf8", HEAD "abc "},
		{"a\xc3", "\xa4z", "utf8", HEAD "a " TAIL "z "},
		{"a\xf0\x9f", "\x92\xa9z", "utf8", HEAD "a " TAIL "z "},
		{"a\xff!", "z", "base64", HEAD "a\xff! " TAIL "z "},
		{"a", "\x80\x80\x80\x80z", "base64", HEAD "a " TAIL "\x80\x80\x80\x80z "},
		{"a\xc3", "\xff", "base64", HEAD "a\xc3 " TAIL "\xff "},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_copy_view view = {.kept = true,
			.bytes = slice_of(rows[i].head),
			.tail = slice_of(rows[i].tail),
			.truncated = true,
			.seen = 1000};
		struct event ev = {.kind = EVENT_NET_HTTP};
		scoped_str struct str beside = {0};
		struct bridge_body body;

		tell(&view, &ev, &body, &beside);
		assert_string_equal(beside.p, rows[i].beside);
		assert_true(slice_is(ev.body_encoding, rows[i].encoding));
		assert_true(ev.body_truncated && event_has(&ev, body_blob));
		assert_false(event_has(&ev, body));
		assert_int_equal(event_has(&ev, body_tail_blob), rows[i].tail[0] != 0);
		bridge_body_done(&body);
	}
}

static void test_short_ones_stand_in_their_event(void **state)
{
	char text[BRIDGE_BODY_INLINE_MAX + 2], hash[DIGEST_HEX_SIZE];

	fill(text, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t len = BRIDGE_BODY_INLINE_MAX - 1; len <= BRIDGE_BODY_INLINE_MAX + 1; len++) {
		struct http_copy_view view = {.kept = true,
			.bytes = {.p = text, .len = len},
			.seen = len,
			.whole = true,
			.sha256 = "d"};
		bool is_short = len <= BRIDGE_BODY_INLINE_MAX;
		struct event ev = {.kind = EVENT_NET_WS};
		scoped_str struct str beside = {0};
		struct bridge_body body;

		tell(&view, &ev, &body, &beside);
		assert_int_equal(event_has(&ev, body), is_short);
		assert_int_equal(event_has(&ev, body_blob), !is_short);
		assert_int_equal(beside.len > 0, !is_short);
		assert_false(event_has(&ev, body_truncated));
		assert_true(slice_is(ev.body_sha256, "d") && slice_is(ev.body_encoding, "utf8"));
		digest_of(text, len, hash);
		assert_true(is_short ? ev.body.len == len : slice_is(ev.body_blob, hash));
		bridge_body_done(&body);
	}
}

/* Nothing is said of what nobody asked for, or of what was empty; one of which nothing may be kept is cut. */
static void test_nothing_kept(void **state)
{
	const struct http_copy_view none = {.seen = 5}, empty = {.kept = true},
				    cut = {.kept = true, .seen = 5, .truncated = true};
	const struct http_copy_view *views[] = {&none, &empty, &cut};

	for (size_t i = 0; i < 3; i++) {
		struct event ev = {.kind = EVENT_NET_HTTP};
		scoped_str struct str beside = {0};
		struct bridge_body body;

		tell(views[i], &ev, &body, &beside);
		assert_int_equal(beside.len, 0);
		assert_int_equal(event_has(&ev, body_truncated), i == 2);
		assert_int_equal(event_has(&ev, body_encoding), i == 2);
		assert_false(event_has(&ev, body_blob) || event_has(&ev, body));
		bridge_body_done(&body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_head_and_tail),
		cmocka_unit_test(test_cut_bodies_go_beside),
		cmocka_unit_test(test_short_ones_stand_in_their_event),
		cmocka_unit_test(test_nothing_kept)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
