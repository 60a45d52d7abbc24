/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/h2_machine.h"

#include <errno.h>
#include <stdlib.h>

#include "gateway/h2_parts.h"
#include "util/mem.h"

#define SMALL_BUFFER  4096       /* kept while idle */
#define SESSION_BYTES (20 << 10) /* of nghttp2's for a connection, about */
#define ITEM_BYTES    256        /* of its for a frame that waits */

static int open_session(struct h2_machine *m, enum machine_side side)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP1_MAX_HEAD},
		side == MACHINE_CLIENT
			? (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
				  H2_STREAMS}
			: (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	int r = h2_events_callbacks(&callbacks, side);

	if (r == 0 && nghttp2_option_new(&option) != 0)
		r = -ENOMEM;
	if (r == 0) {
		nghttp2_option_set_no_auto_window_update(option, 1);
		r = side == MACHINE_CLIENT
		            ? nghttp2_session_server_new2(&m->session[side], callbacks, m, option)
		            : nghttp2_session_client_new2(&m->session[side], callbacks, m, option);
	}
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	if (r == 0)
		r = nghttp2_submit_settings(m->session[side], NGHTTP2_FLAG_NONE, settings,
			sizeof(settings) / sizeof(settings[0]));
	m->window[side] = H2_CONN_WINDOW;
	if (r == 0)
		r = nghttp2_session_set_local_window_size(
			m->session[side], NGHTTP2_FLAG_NONE, 0, H2_CONN_WINDOW);
	return r ? -ENOMEM : 0;
}

nghttp2_session *h2_machine_server(struct h2_machine *m)
{
	if (m->server_gone)
		return NULL;
	if (!m->session[MACHINE_SERVER] && open_session(m, MACHINE_SERVER) < 0)
		m->error = -ENOMEM;
	return m->session[MACHINE_SERVER];
}

/* Both directions of the connection are over, and what was said in it went out. */
static bool is_over(struct h2_machine *m, enum machine_side side)
{
	nghttp2_session *s = m->session[side];

	return m->closing[side] ||
	       (s && !nghttp2_session_want_read(s) && !nghttp2_session_want_write(s) &&
		       m->at[side] == m->out[side].len);
}

/* Streams that wait for an answer get none; the others finish. No new ones. */
static void lose_server(struct h2_machine *m)
{
	nghttp2_session *client = m->session[MACHINE_CLIENT];

	if (m->server_gone)
		return;
	m->server_gone = m->closing[MACHINE_SERVER] = true;
	for (struct h2_stream *s = m->streams, *next; s; s = next) {
		next = s->next;
		if (!s->closed[MACHINE_SERVER] && s->id[MACHINE_SERVER])
			h2_stream_lost(s);
	}
	(void)nghttp2_submit_goaway(client, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(client), NGHTTP2_NO_ERROR, NULL, 0);
}

static void check_ends(struct h2_machine *m)
{
	if (is_over(m, MACHINE_CLIENT))
		m->closing[MACHINE_CLIENT] = m->closing[MACHINE_SERVER] = true;
	else if (is_over(m, MACHINE_SERVER))
		lose_server(m);
}

static size_t machine_take(void *self, enum machine_side from, const void *p, size_t len)
{
	struct h2_machine *m = self;
	nghttp2_session *session = from == MACHINE_SERVER ? h2_machine_server(m) : m->session[from];
	ssize_t n;

	if (m->closing[from] || !session)
		return len; /* nobody listens any more */
	/* Who does not read what it is told is not listened to. */
	if (m->out[from].len - m->at[from] >= H2_HIGH_WATER)
		return 0;
	n = nghttp2_session_mem_recv(session, p, len);
	if (n < 0) {
		m->error = n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
		return len;
	}
	if (m->scratch.cap > SMALL_BUFFER)
		str_done(&m->scratch);
	check_ends(m);
	return len;
}

static void machine_end(void *self, enum machine_side from)
{
	struct h2_machine *m = self;

	if (from == MACHINE_CLIENT)
		m->closing[MACHINE_CLIENT] = m->closing[MACHINE_SERVER] = true;
	else
		lose_server(m);
}

static void fill(struct h2_machine *m, enum machine_side to)
{
	while (m->session[to] && !m->error && m->out[to].len - m->at[to] < H2_HIGH_WATER) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(m->session[to], &p);

		if (n < 0)
			m->error = n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
		if (n <= 0)
			break;
		str_add(&m->out[to], p, (size_t)n);
	}
}

static struct slice machine_peek(void *self, enum machine_side to)
{
	struct h2_machine *m = self;

	if (m->at[to] == m->out[to].len && !(to == MACHINE_SERVER && m->server_gone))
		fill(m, to);
	return (struct slice){.p = m->out[to].p ? m->out[to].p + m->at[to] : NULL,
		.len = m->out[to].len - m->at[to]};
}

static void machine_sent(void *self, enum machine_side to, size_t n)
{
	struct h2_machine *m = self;

	m->at[to] += n;
	if (m->at[to] < m->out[to].len)
		return;
	m->at[to] = 0;
	if (m->out[to].cap > SMALL_BUFFER)
		str_done(&m->out[to]);
	else
		str_reset(&m->out[to]);
	check_ends(m);
}

static bool machine_wants_end(void *self, enum machine_side to)
{
	return ((struct h2_machine *)self)->closing[to];
}

static size_t machine_holds(const void *self)
{
	const struct h2_machine *m = self;
	size_t n = sizeof(*m) + m->scratch.cap;

	for (int i = 0; i < MACHINE_SIDES; i++) {
		n += m->out[i].cap + (m->session[i] ? SESSION_BYTES : 0);
		if (m->session[i])
			n += nghttp2_session_get_outbound_queue_size(m->session[i]) * ITEM_BYTES;
	}
	for (const struct h2_stream *s = m->streams; s; s = s->next)
		n += h2_stream_holds(s);
	return n;
}

static int machine_error(void *self)
{
	return ((struct h2_machine *)self)->error;
}

static int machine_check(void *self, bool must_read)
{
	struct h2_machine *m = self;

	for (struct h2_stream *s = m->streams; s; s = s->next)
		h2_stream_check(s);
	return 0;
}

static void machine_free(void *self)
{
	struct h2_machine *m = self;

	if (!m)
		return;
	while (m->streams)
		h2_stream_free(m->streams);
	for (int i = 0; i < MACHINE_SIDES; i++) {
		nghttp2_session_del(m->session[i]);
		str_done(&m->out[i]);
	}
	str_done(&m->scratch);
	if (m->setup.spare)
		*m->setup.spare += m->taken;
	free(m);
}

void h2_machine_new(const struct http_setup *setup, struct machine *ret_machine)
{
	static const struct machine_ops ops = {
		.take = machine_take,
		.end = machine_end,
		.peek = machine_peek,
		.sent = machine_sent,
		.wants_end = machine_wants_end,
		.holds = machine_holds,
		.error = machine_error,
		.check = machine_check,
		.free = machine_free,
	};
	struct h2_machine *m = new0(struct h2_machine);

	m->setup = *setup;
	m->error = open_session(m, MACHINE_CLIENT);
	*ret_machine = (struct machine){.ops = &ops, .self = m};
}
