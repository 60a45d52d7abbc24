/* SPDX-License-Identifier: Apache-2.0 */
/* What waits of a stream for either side, and the windows that bound it. */
#include "gateway/h2_parts.h"

void h2_body_settle(struct h2_stream *s, enum machine_side to, size_t n)
{
	enum machine_side from = machine_other(to);
	struct h2_half *half = &s->to[to];

	if (n > half->owed)
		n = half->owed;
	half->owed -= n;
	if (!n || !s->m->session[from])
		return;
	if (s->closed[from])
		(void)nghttp2_session_consume_connection(s->m->session[from], n);
	else
		(void)nghttp2_session_consume(s->m->session[from], s->id[from], n);
}

void h2_body_add(struct h2_stream *s, enum machine_side to, struct slice data)
{
	struct h2_half *half = &s->to[to];

	/* What is sent already does not pile up in front of what is not. */
	if (half->at > half->waiting.len / 2) {
		half->waiting.len -= half->at;
		memmove(half->waiting.p, half->waiting.p + half->at, half->waiting.len);
		half->at = 0;
	}
	str_add(&half->waiting, data.p, data.len);
	h2_body_wake(s, to);
}

/* Room for more bytes of this connection, out of what all flows share. */
static bool widen_connection(struct h2_machine *m, enum machine_side from, int32_t window)
{
	size_t more = (size_t)(window - m->window[from]);

	if (window <= m->window[from])
		return true;
	if (!m->setup.spare || *m->setup.spare < more)
		return false;
	*m->setup.spare -= more;
	m->taken += more;
	m->window[from] = window;
	return nghttp2_session_set_local_window_size(
		       m->session[from], NGHTTP2_FLAG_NONE, 0, window) == 0;
}

/* A stream that went out as fast as it came, for a whole window, may be far from its sender: its window, and not
 * either side, would be its limit. */
static void widen(struct h2_stream *s, enum machine_side to)
{
	enum machine_side from = machine_other(to);
	struct h2_half *half = &s->to[to];
	int32_t window = (half->window ? half->window : H2_WINDOW) * 2;

	if (half->since_wider < (size_t)window / 2 || window > H2_WINDOW_MAX || s->closed[from] ||
		!widen_connection(s->m, from, window))
		return;
	half->since_wider = 0;
	half->window = window;
	(void)nghttp2_session_set_local_window_size(
		s->m->session[from], NGHTTP2_FLAG_NONE, s->id[from], window);
}

static void submit_trailers(struct h2_stream *s, enum machine_side to)
{
	struct h2_half *half = &s->to[to];
	struct h2_block block;

	h2_block_init(&block, half->trailers.n_views + 1);
	h2_block_add_fields(&block, &half->trailers, to == MACHINE_SERVER ? &s->turn : NULL);
	(void)nghttp2_submit_trailer(s->m->session[to], s->id[to], h2_block_items(&block), block.n);
	h2_block_done(&block);
}

static ssize_t read_body(
	struct h2_stream *s, enum machine_side to, uint8_t *buf, size_t len, uint32_t *flags)
{
	struct h2_half *half = &s->to[to];
	size_t left = half->waiting.len - half->at, n = left < len ? left : len;

	if (!n && !half->ended) {
		half->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n)
		memcpy(buf, half->waiting.p + half->at, n);
	half->at += n;
	half->since_wider += n;
	h2_body_settle(s, to, n);
	if (half->at < half->waiting.len)
		return (ssize_t)n;
	half->at = 0;
	str_done(&half->waiting);
	if (!half->ended) {
		widen(s, to);
		return (ssize_t)n;
	}
	h2_body_settle(s, to, half->owed);
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (half->has_trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		submit_trailers(s, to);
	}
	return (ssize_t)n;
}

ssize_t h2_body_to_client(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	return read_body(source->ptr, MACHINE_CLIENT, buf, len, flags);
}

ssize_t h2_body_to_server(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	return read_body(source->ptr, MACHINE_SERVER, buf, len, flags);
}

void h2_body_wake(struct h2_stream *s, enum machine_side to)
{
	struct h2_half *half = &s->to[to];

	if (!half->deferred || s->closed[to] || !s->m->session[to])
		return;
	half->deferred = false;
	(void)nghttp2_session_resume_data(s->m->session[to], s->id[to]);
}
